/** What is in the work tree and not in the commit: left out, taken in, refused; ignored files by list (rows P4, A13). */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRig, type Rig } from "../../support/bulkhead-cli.ts";
import { endRig, outputOf, SMALL, writePlan } from "../../support/e2e-rig.ts";
import { bash } from "../../support/temporary-repository.ts";
import { openTerminal } from "../../support/terminal-session.ts";
import { fingerprint, makeRepository, runTask } from "./user-rig.ts";

let rig: Rig;
let repository: string;

beforeAll(() => {
  rig = createRig();
  repository = makeRepository(
    rig,
    "dirty",
    `printf '.env\\n' > .gitignore; printf '*.bin filter=lfs\\nutf16.txt working-tree-encoding=UTF-16LE\\n' > .gitattributes
     mkdir dir; echo one > changed.txt; echo gone > gone.txt; echo d > dir/d; echo s > staged.txt; echo k > kept.txt; echo p > data.bin; printf '#!/bin/sh\\n' > run.sh; chmod +x run.sh
     git add -A; git commit -qm first
     git config core.autocrlf true; git config core.fileMode false
     printf 'one\\r\\ntwo\\r\\n' > changed.txt; rm gone.txt; rm -r dir; echo file > dir; echo staged > staged.txt; git add staged.txt; rm staged.txt; echo later > staged.txt
     printf 'u\\0' > utf16.txt; printf 'n\\r\\n' > 'né w.txt'; echo secret > .env; echo real > data.bin; chmod -x run.sh
     git init -q nested; echo n > nested/n; ln -s kept.txt link`,
  );
});
afterAll(() => endRig(rig));

const LOOK = `git status --porcelain; for f in *; do test -L "$f" && continue; test -d "$f" && continue; printf '%s %s\\n' "$f" "$(od -An -c "$f" | tr -d ' \\n')"; done; test -x run.sh; test ! -e .env`;
const COMMITTED =
  "changed.txt one\\n\ndata.bin p\\n\ngone.txt gone\\n\nkept.txt k\\n\nrun.sh #!/bin/sh\\n\nstaged.txt s\\n\n";

describe("uncommitted changes", () => {
  test("are left out and told of where nobody is asked", async () => {
    const ran = await runTask(rig, repository, { run: LOOK });
    expect(ran).toMatchObject({ code: 0, output: COMMITTED, patch: [] });
    expect(ran.stderr).toBe(
      "warning: the work tree has uncommitted changes; the run starts from the last commit without them\n",
    );
  });

  test("are included on request, as git would store them; the patch holds the task's changes alone", async () => {
    const before = fingerprint(repository);
    const head = bash(repository, "git rev-parse HEAD").trim();
    const ran = await runTask(rig, repository, {
      args: ["--dirty", "include"],
      run: `${LOOK}; test "$(readlink link)" = kept.txt; test ! -e nested; git log --format=%s; echo three >> changed.txt; rm dir`,
    });
    expect(ran).toMatchObject({
      code: 0,
      output: [
        "changed.txt one\\ntwo\\n",
        "data.bin p\\n",
        "dir file\\n",
        "kept.txt k\\n",
        "né w.txt n\\n",
        "run.sh #!/bin/sh\\n",
        "staged.txt later\\n",
        "utf16.txt u",
        "Uncommitted changes of the work tree",
        "",
      ].join("\n"),
      patch: [
        "diff --git a/changed.txt b/changed.txt",
        "+three",
        "diff --git a/dir b/dir",
        "deleted file mode 100644",
        "-file",
      ],
    });
    expect(ran.stderr).toBe(
      "warning: uncommitted changes of data.bin stay out: a filter driver (such as LFS) stores them, and none is run\nwarning: untracked repositories stay out: nested\n",
    );
    expect(ran.status).toMatchObject({ head_commit: head, base_ref: "main" });
    expect(ran.status.base_commit).not.toBe(head);
    expect(fingerprint(repository)).toBe(before);
    // The same work tree gives the same commit: its base tree is shared.
    const again = await runTask(rig, repository, {
      args: ["--dirty", "include"],
      files: { history: 0 },
      run: "git log --format=%s",
    });
    expect(again.status.base_commit).toBe(ran.status.base_commit);
    expect(again.output).toBe("Uncommitted changes of the work tree\nfirst\n");
  });

  test("are refused with their names", async () => {
    const plan = writePlan(rig, { tasks: [{ id: "t", run: "true" }] });
    const { code, stderr } = await rig.run(["run", plan, "--dirty", "refuse"], { cwd: repository });
    expect(code).toBe(2);
    expect(stderr).toContain(
      "has uncommitted changes: changed.txt, data.bin, dir/d, gone.txt, staged.txt, dir, link, né w.txt, utf16.txt",
    );
    expect(stderr).toContain("--dirty include");
  });

  test("of a merge in progress cannot be included; bulkhead.yaml may say what is to be done", async () => {
    const path = makeRepository(
      rig,
      "merging",
      `printf 'defaults: {dirty: include}\\n' > bulkhead.yaml; echo 0 > a; git add -A; git commit -qm base; git checkout -q -b other; echo 1 > a; git commit -qam other
       git checkout -q main; echo 2 > a; git commit -qam main; git merge -q other || true`,
    );
    const plan = writePlan(rig, { defaults: SMALL, tasks: [{ id: "t", run: "cat a" }] });
    const refused = await rig.run(["run", plan], { cwd: path });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("is in the middle of a merge: a");
    expect((await rig.run(["run", plan, "--dirty", "ignore"], { cwd: path })).code).toBe(0);
    expect(await outputOf(rig, "t")).toBe("2\n");
  });

  test("a person on a terminal is asked once", async () => {
    const plan = writePlan(rig, { defaults: SMALL, tasks: [{ id: "t", run: "cat changed.txt" }] });
    const session = openTerminal(rig, ["run", plan], repository);
    await session.sees("5 tracked files have changes, 4 files are new");
    await session.sees("[i/w/N]");
    session.type("i\r");
    expect(await session.ended).toBe(0);
    expect(await outputOf(rig, "t")).toBe("one\ntwo\n");
    const other = openTerminal(rig, ["run", plan], repository);
    await other.sees("[i/w/N]");
    other.type("\r");
    expect(await other.ended).toBe(2);
    expect(other.text).toContain("was not started");
  });
});

describe("ignored files", () => {
  test("by .worktreeinclude and files.extra, and no others", async () => {
    const path = makeRepository(
      rig,
      "ignored",
      `printf '.env*\\nlocal/\\n*.key\\n' > .gitignore; echo a > a.txt; git add -A; git commit -qm first
       printf '# what every task needs\\r\\n.env.test\\r\\nlocal/cfg/\\nnot-ignored.txt\\nmissing.*\\n' > .worktreeinclude
       echo canary > .env; echo test > .env.test; mkdir -p local/cfg/deep local/other; echo c > local/cfg/deep/c; echo o > local/other/o; echo n > not-ignored.txt; echo k > x.key`,
    );
    const before = fingerprint(path);
    const ran = await runTask(rig, path, {
      files: { extra: ["*.key", "also-missing"] },
      run: "git status --porcelain; find . -path ./.git -prune -o -type f -print | sort; echo more >> a.txt; echo changed > .env.test",
    });
    expect(ran).toMatchObject({
      code: 0,
      output: "./.env.test\n./.gitignore\n./a.txt\n./local/cfg/deep/c\n./x.key\n",
      patch: ["diff --git a/a.txt b/a.txt", "+more"],
    });
    expect(ran.status.warnings.map(({ message }) => message)).toEqual([
      `files.extra: "also-missing" matches no ignored or untracked file in ${path}`,
      `.worktreeinclude: "not-ignored.txt" matches no ignored file in ${path}`,
      `.worktreeinclude: "missing.*" matches no ignored file in ${path}`,
    ]);
    expect(fingerprint(path)).toBe(before);
  });

  test("by a person's own ignore file stay out of included changes", async () => {
    const path = makeRepository(
      rig,
      "own-ignore",
      "echo a > a.txt; git add -A; git commit -qm first; echo s > .secret; echo n > new.txt",
    );
    const home = join(rig.root, "home");
    bash(rig.root, `mkdir -p home/.config/git; echo .secret > home/.config/git/ignore`);
    const ran = await runTask(rig, path, {
      args: ["--dirty", "include"],
      env: { HOME: home, XDG_CONFIG_HOME: "" },
      run: "ls -A",
    });
    expect(ran.output).toBe(".git\na.txt\nnew.txt\n");
  });

  test("a .worktreeinclude that is a link is not followed", async () => {
    const path = makeRepository(
      rig,
      "linked-include",
      "echo .env > .gitignore; echo e > .env; ln -s /etc/hostname .worktreeinclude",
    );
    const ran = await runTask(rig, path, { run: "test ! -e .env" });
    expect(ran.code).toBe(0);
    expect(ran.status.warnings.map(({ message }) => message)).toEqual([
      ".worktreeinclude is not used: it is no regular file",
    ]);
  });
});
