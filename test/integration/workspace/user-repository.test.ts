/**
 * Repositories as people have them: each one ends in the right view inside and the right patch, or in a stated, typed refusal
 * (rows P1, P2, P4, P5). Every run also leaves the repository byte for byte as it was.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRig, git, type Rig } from "../../support/bulkhead-cli.ts";
import { endRig, readEvents, writePlan } from "../../support/e2e-rig.ts";
import { bash } from "../../support/temporary-repository.ts";
import { fingerprint, makeRepository, type Ran, runTask, type TaskShape } from "./user-rig.ts";

let rig: Rig;
let gitConfig: string;

beforeAll(() => {
  rig = createRig();
  gitConfig = join(rig.root, "gitconfig");
  writeFileSync(gitConfig, "");
  rig.env["GIT_CONFIG_GLOBAL"] = gitConfig;
});
afterAll(() => endRig(rig));

/** Runs a task and sees that the repository was only read. */
async function attempt(repository: string, shape: TaskShape): Promise<Ran> {
  const before = fingerprint(repository);
  const ran = await runTask(rig, repository, shape);
  expect(fingerprint(repository)).toBe(before);
  return ran;
}

const GIT_WORKS = `test -z "$(git status --porcelain)"
echo more >> a.txt; test "$(git status --porcelain)" = ' M a.txt'; git add -A; git commit -qm more; git log --oneline | wc -l`;
const MORE = ["diff --git a/a.txt b/a.txt", "+more"];

describe("submodules", () => {
  test("nested ones are there to build with; one that cannot be had is named, and the run goes on", async () => {
    makeRepository(rig, "inner", "echo inner > i.h; ln -s i.h link.h");
    makeRepository(
      rig,
      "outer",
      "printf 'out/\\n' > .gitignore; echo outer > o.h; git submodule -q add ../inner dep/in",
    );
    makeRepository(rig, "auth", "echo x > x");
    const path = makeRepository(
      rig,
      "super",
      `echo a > a.txt; git submodule -q add ../outer lib/outer; git submodule -q update --init --recursive
       git submodule -q add ../auth private; git add -A; git commit -qm first
       git submodule -q deinit -f private; rm -rf .git/modules/private; git config -f .gitmodules -l > /dev/null`,
    );
    const ran = await attempt(path, {
      run: `cat lib/outer/o.h lib/outer/dep/in/link.h; test -z "$(ls -A private)"
        mkdir lib/outer/out; cat lib/outer/o.h > lib/outer/out/built; ${GIT_WORKS}`,
    });
    expect(ran).toMatchObject({ code: 0, output: "outer\ninner\n2\n", patch: MORE });
    expect(ran.stderr).toBe(
      "warning: submodule private stays an empty directory in snapshots: it is not cloned here; `git submodule update --init --recursive` does it\n",
    );
    // What was built inside is left out by the submodule's own .gitignore, and counted.
    expect(ran.task.patch).toMatchObject({ ignored_files: 1 });
  });

  test("a change inside one is refused by its name, not lost in silence", async () => {
    makeRepository(rig, "lib", "echo l > l.txt");
    const path = makeRepository(rig, "uses-lib", "echo a > a.txt; git submodule -q add ../lib vendor/lib");
    const ran = await attempt(path, { run: "echo changed > vendor/lib/l.txt; echo more >> a.txt" });
    expect(ran).toMatchObject({ code: 1, patch: [], task: { failure: { reason: "result-refused" } } });
    const [failed] = readEvents(rig).flatMap(({ event }) =>
      event.type === "task-failed" ? [event.failure] : [],
    );
    expect(failed).toMatchObject({
      fault: "agent",
      problems: [{ path: "vendor/lib", kind: "git-directory", detail: expect.stringContaining("submodule") }],
    });
  });

  test("in a linked work tree, whose submodules are its own", async () => {
    makeRepository(rig, "part", "echo p > p.txt");
    const main = makeRepository(rig, "has-worktree", "echo a > a.txt");
    const linked = join(rig.root, "linked tree");
    bash(
      main,
      `git worktree add -q -b topic '${linked}'; cd '${linked}'; git -c protocol.file.allow=always submodule --quiet add ../part part
       echo b > b.txt; git add -A; git commit -qm topic`,
    );
    const before = fingerprint(main);
    const ran = await attempt(linked, { run: `cat part/p.txt b.txt; ${GIT_WORKS}` });
    expect(ran).toMatchObject({ code: 0, stderr: "", output: "p\nb\n2\n", patch: MORE });
    expect(ran.status).toMatchObject({ repository: linked, base_ref: "topic" });
    expect(fingerprint(main)).toBe(before);
  });
});

describe("kinds of repositories", () => {
  test("LFS without git-lfs: pointers come in as they are, and are counted", async () => {
    const path = makeRepository(
      rig,
      "lfs",
      `echo a > a.txt; echo '*.bin filter=lfs diff=lfs merge=lfs -text' > .gitattributes
       printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 12\\n' 7 > big.bin; git add -A; git commit -qm first
       git config filter.lfs.process 'no-such-git-lfs filter-process'; git config filter.lfs.required true`,
    );
    const ran = await attempt(path, { run: `head -1 big.bin; ${GIT_WORKS}` });
    expect(ran).toMatchObject({
      code: 0,
      stderr: "warning: 1 file is a Git LFS pointer in snapshots, not the content behind it: big.bin\n",
      output: "version https://git-lfs.github.com/spec/v1\n2\n",
      patch: MORE,
    });
  });

  test("a sparse checkout: all files are inside, also those that are not in the work tree", async () => {
    const path = makeRepository(
      rig,
      "sparse",
      "mkdir in out; echo a > a.txt; echo i > in/i; echo o > out/o; git add -A; git commit -qm first; git sparse-checkout set in",
    );
    expect(existsSync(join(path, "out"))).toBe(false);
    const ran = await attempt(path, { run: `cat in/i out/o; echo changed > out/o; git status --porcelain` });
    expect(ran).toMatchObject({
      code: 0,
      stderr: "warning: The work tree is a sparse checkout; snapshots hold all files of the commit.\n",
      output: "i\no\n M out/o\n",
      patch: ["diff --git a/out/o b/out/o", "-o", "+changed"],
    });
  });

  test("a shallow clone, with all of the history that it has", async () => {
    const origin = makeRepository(
      rig,
      "origin",
      "for i in 1 2 3 4; do echo $i > a.txt; git add -A; git commit -qm $i; done",
    );
    const path = join(rig.root, "shallow");
    bash(rig.root, `git clone -q --depth 2 'file://${origin}' '${path}'`);
    const ran = await attempt(path, { files: { history: 0 }, run: `git fsck; ${GIT_WORKS}` });
    expect(ran).toMatchObject({ code: 0, stderr: "", output: "3\n", patch: MORE });
  });

  test("SHA-256 objects, with a submodule, on a detached HEAD", async () => {
    makeRepository(rig, "sub256", "echo s > s.txt", "sha256");
    const path = makeRepository(
      rig,
      "sha256",
      "echo a > a.txt; git submodule -q add ../sub256 sub; git add -A; git commit -qm first; git checkout -q --detach",
      "sha256",
    );
    const ran = await attempt(path, {
      run: `cat sub/s.txt; git rev-parse --show-object-format; ${GIT_WORKS}`,
    });
    expect(ran).toMatchObject({ code: 0, stderr: "", output: "s\nsha256\n2\n", patch: MORE });
    expect(ran.status.base_ref).toBeNull();
    expect(ran.task.patch?.commit).toMatch(/^[0-9a-f]{64}$/);
  });

  test("autocrlf: the repository's own line ends inside and in the patch", async () => {
    const path = makeRepository(
      rig,
      "crlf",
      "printf 'a\\nb\\n' > a.txt; git add -A; git commit -qm first; git config core.autocrlf true; rm a.txt; git checkout -q a.txt",
    );
    expect(bash(path, "cat a.txt")).toBe("a\r\nb\r\n");
    const ran = await attempt(path, { run: `od -An -c a.txt | tr -d ' '; ${GIT_WORKS}` });
    expect(ran).toMatchObject({ code: 0, stderr: "", output: "a\\nb\\n\n2\n", patch: MORE });
  });

  test("fileMode=false: modes are those of the commit, and a changed one comes out", async () => {
    const path = makeRepository(
      rig,
      "modes",
      "echo a > a.txt; printf '#!/bin/sh\\n' > run.sh; chmod +x run.sh; git add -A; git commit -qm first; git config core.fileMode false; chmod -x run.sh; chmod +x a.txt",
    );
    const ran = await attempt(path, {
      run: "test -x run.sh; test ! -x a.txt; git status --porcelain; chmod +x a.txt",
    });
    expect(ran).toMatchObject({
      code: 0,
      stderr: "",
      output: "",
      patch: ["diff --git a/a.txt b/a.txt", "old mode 100644", "new mode 100755"],
    });
  });

  test("signing that cannot work and hooks that fail stop nothing, and nothing of them runs", async () => {
    const path = makeRepository(rig, "hooks", "echo a > a.txt");
    const ran = join(rig.root, "hook-ran");
    bash(
      path,
      `git config commit.gpgsign true; git config user.signingkey none; git config gpg.program 'touch ${ran}'
       git config core.hooksPath .git/own; mkdir .git/own; git config core.fsmonitor 'touch ${ran}'; git config filter.x.clean 'touch ${ran}'; git config filter.x.required true
       for hook in pre-commit commit-msg post-checkout post-commit post-index-change reference-transaction pre-auto-gc; do printf '#!/bin/sh\\ntouch ${ran}\\nexit 1\\n' > .git/own/$hook; chmod +x .git/own/$hook; cp .git/own/$hook .git/hooks; done`,
    );
    for (const args of [[], ["--dirty", "include"]]) {
      const done = await attempt(path, { run: GIT_WORKS, args });
      expect(done).toMatchObject({ code: 0, stderr: "", output: "2\n", patch: MORE });
    }
    expect(existsSync(ran)).toBe(false);
  });

  test("one of another user is refused by both uids until they say so, then run and left as theirs", async () => {
    const path = makeRepository(rig, "theirs", "echo a > a.txt; git add -A; git commit -qm first");
    bash(path, "chown -R 1234:1234 .");
    const plan = writePlan(rig, { tasks: [{ id: "t", run: "true" }] });
    const refused = await rig.run(["run", plan], { cwd: path });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(`${path} belongs to uid 1234, bulkhead runs as uid 0`);
    expect(refused.stderr).toContain(`git config --global --add safe.directory ${path}`);
    writeFileSync(gitConfig, `[safe]\n\tdirectory = ${path}\n`);
    const ran = await attempt(path, { run: GIT_WORKS });
    expect(ran).toMatchObject({ code: 0, output: "2\n", patch: MORE });
    expect(bash(path, "find . ! -uid 1234")).toBe("");
  });
});

describe("what has no commit or no work tree is refused with exit code 2 and a way on", () => {
  test.each([
    ["unborn", "git init -q unborn", "has no commit yet", "Make a first commit"],
    ["bare.git", "git init -q --bare bare.git", "is a bare repository", "git worktree add"],
    [
      "bare-by-config",
      "git init -q bare-by-config; git -C bare-by-config config core.bare true",
      "is a bare repository",
      "git worktree add",
    ],
    ["no-repository", "mkdir no-repository", "is not in a git repository", "--repo"],
  ])("%s", async (name, setup, what, next) => {
    bash(rig.root, setup);
    const plan = writePlan(rig, { tasks: [{ id: "t", run: "true" }] });
    const { code, stdout, stderr } = await rig.run(["run", plan], { cwd: join(rig.root, name) });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(what);
    expect(stderr).toContain(next);
  });
});

test("a run on a repository in use leaves its index and refs to its owner", async () => {
  const path = makeRepository(
    rig,
    "in-use",
    "echo a > a.txt; git add -A; git commit -qm first; touch .git/index.lock",
  );
  const ran = await attempt(path, { run: GIT_WORKS, args: ["--dirty", "include"] });
  expect(ran).toMatchObject({ code: 0, patch: MORE });
  expect(git(path, "for-each-ref").trim().split("\n")).toHaveLength(1);
});
