import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readRepositoryState } from "../../../src/workspace/repository-state.ts";
import {
  bash,
  createTemporaryRepository,
  type TemporaryRepository,
} from "../../support/temporary-repository.ts";

let repo: TemporaryRepository;
beforeEach(() => {
  repo = createTemporaryRepository("mkdir -p a/b; echo 1 > a/b/file");
});
afterEach(() => repo.dispose());

const head = () => repo.sh("git rev-parse HEAD").trim();

test("reads branch, commit and format from any directory inside", async () => {
  expect(await readRepositoryState(join(repo.repository, "a/b"))).toEqual({
    path: repo.repository,
    headCommit: head(),
    ref: "main",
    objectFormat: "sha1",
    dirty: false,
    warnings: [],
  });
});

test("sees changes of tracked files, staged or not, and no others", async () => {
  repo.sh("echo new > untracked");
  expect((await readRepositoryState(repo.repository)).dirty).toBe(false);
  repo.sh("echo 2 > a/b/file");
  expect((await readRepositoryState(repo.repository)).dirty).toBe(true);
  repo.sh("git add a");
  expect((await readRepositoryState(repo.repository)).dirty).toBe(true);
});

test("knows linked work trees, detached heads and directories with odd names", async () => {
  repo.sh("git worktree add -q --detach $'../li\\nnked é'");
  const linked = await readRepositoryState(join(repo.root, "li\nnked é"));
  expect(linked).toMatchObject({ path: join(repo.root, "li\nnked é"), headCommit: head(), ref: null });
});

test("warns of submodules that cannot be had, LFS pointers, a sparse or partial checkout", async () => {
  repo.sh(`git clone -q . ../sub; git -c protocol.file.allow=always submodule --quiet add ../sub mod
    git -c protocol.file.allow=always submodule --quiet add ../sub gone; rm -rf .git/modules/gone gone; mkdir gone
    mkdir x; echo '*.bin filter=lfs diff=lfs' > x/.gitattributes; echo other > x/b.bin
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 12\n' 7 > x/a.bin`);
  repo.commit();
  repo.sh("git config core.sparseCheckout true; git config extensions.partialClone origin");
  const { warnings } = await readRepositoryState(repo.repository);
  expect(warnings).toEqual([
    "submodule gone stays an empty directory in snapshots: it is not cloned here; `git submodule update --init --recursive` does it",
    "1 file is a Git LFS pointer in snapshots, not the content behind it: x/a.bin",
    expect.stringContaining("sparse"),
    expect.stringContaining("partial"),
  ]);
});

test("says why a submodule cannot be had: nested, a commit that is not there, no entry, a name that leads out", async () => {
  repo.sh(`git init -q ../inner; git -C ../inner commit -q --allow-empty -m inner; git init -q ../outer
    git -C ../outer -c protocol.file.allow=always submodule --quiet add ../inner in; git -C ../outer commit -qm outer
    git -c protocol.file.allow=always submodule --quiet add ../outer out
    for name in here evil; do git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),$name; done
    git config -f .gitmodules submodule.here.path here; git config -f .gitmodules submodule.../../sub.path evil
    git update-index --add --cacheinfo 160000,$(printf %040d 1),lost; mkdir -p .git/modules/lost; git init -q --bare .git/modules/lost
    git config -f .gitmodules submodule.lost.path lost; git config -f .gitmodules --remove-section submodule.here
    git add .gitmodules; git commit -qm links`);
  const { warnings } = await readRepositoryState(repo.repository);
  expect(warnings.map((warning) => warning.replace(" stays an empty directory in snapshots", ""))).toEqual([
    expect.stringMatching(/^submodule evil: it is not cloned here/),
    "submodule here: .gitmodules has no entry for it",
    expect.stringMatching(/^submodule lost: its clone here lacks commit 000000000000;/),
    expect.stringMatching(/^1 more submodules stay empty in snapshots: out\/in$/),
  ]);
});

test("refuses with a reason: no repository, bare, inside .git, unborn, another owner", async () => {
  const code = (path: string) =>
    readRepositoryState(path).then(
      () => "none",
      (error: { code: string; data: object }) => error,
    );
  expect(await code(repo.root)).toMatchObject({ code: "not-a-repository" });
  expect(await code(join(repo.root, "missing"))).toMatchObject({ code: "not-a-repository" });
  repo.sh(
    "git clone -q --bare . ../bare.git; git init -q ../unborn; git clone -q . ../other; chown -R 1234 ../other",
  );
  expect(await code(join(repo.root, "bare.git"))).toMatchObject({
    code: "not-a-repository",
    data: { bare: true },
  });
  expect(await code(join(repo.repository, ".git"))).toMatchObject({
    code: "not-a-repository",
    data: { bare: false },
  });
  expect(await code(join(repo.root, "unborn"))).toMatchObject({
    code: "repository-refused",
    data: { unborn: true },
  });
  expect(await code(join(repo.root, "other/a"))).toMatchObject({
    code: "repository-refused",
    data: { path: join(repo.root, "other"), ownerUid: 1234, uid: 0 },
  });
});

test("runs nothing that the repository names, and writes nothing", async () => {
  const marker = join(repo.root, "ran");
  repo.sh(`
    echo '* filter=evil diff=evil' > .gitattributes; git add -A; git commit -qm attributes
    git config filter.evil.clean 'touch ${marker}; cat'; git config filter.evil.process 'touch ${marker}'; git config filter.evil.required true
    git config core.fsmonitor 'touch ${marker}'; git config diff.external 'touch ${marker}'; git config core.hooksPath hooks
    mkdir hooks; printf '#!/bin/sh\\ntouch ${marker}\\n' > hooks/post-index-change; chmod +x hooks/*; touch a/b/file`);
  const listing = () => bash(repo.repository, "find . -printf '%p %m %s %T@ %C@ %i\\n' | sort");
  const before = listing();
  await readRepositoryState(repo.repository);
  expect(existsSync(marker)).toBe(false);
  expect(listing()).toBe(before);
});

test("is not led astray by the environment of a git hook", async () => {
  process.env["GIT_DIR"] = join(repo.root, "nowhere");
  process.env["GIT_WORK_TREE"] = "/";
  try {
    expect((await readRepositoryState(repo.repository)).path).toBe(repo.repository);
  } finally {
    delete process.env["GIT_DIR"];
    delete process.env["GIT_WORK_TREE"];
  }
});
