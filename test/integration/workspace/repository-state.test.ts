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

test("warns of submodules, LFS, a sparse or partial checkout", async () => {
  repo.sh(
    `git clone -q . ../sub; git -c protocol.file.allow=always submodule --quiet add ../sub mod; mkdir x; echo '*.bin filter=lfs diff=lfs' > x/.gitattributes`,
  );
  repo.commit();
  repo.sh("git config core.sparseCheckout true; git config extensions.partialClone origin");
  const { warnings } = await readRepositoryState(repo.repository);
  expect(warnings.map((warning) => /mod$|LFS|sparse|partial/.exec(warning)?.[0])).toEqual([
    "mod",
    "LFS",
    "sparse",
    "partial",
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
