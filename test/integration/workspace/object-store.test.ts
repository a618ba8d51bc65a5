import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { gitText } from "../../../src/workspace/git.ts";
import { openObjectStore } from "../../../src/workspace/object-store.ts";
import {
  bash,
  createTemporaryRepository,
  ODD_FILES,
  type TemporaryRepository,
} from "../../support/temporary-repository.ts";

let repo: TemporaryRepository;
const open = () => openObjectStore({ cacheDir: repo.cacheDir, repository: repo.repository });

beforeEach(() => {
  repo = createTemporaryRepository(ODD_FILES, { name: "my %41 repo:é" });
});
afterEach(() => repo.dispose());

describe("openObjectStore", () => {
  test("twenty at once make one private store", async () => {
    const stores = await Promise.all(Array.from({ length: 20 }, open));
    expect(new Set(stores.map((store) => store.gitDir)).size).toBe(1);
    const [first] = stores;
    expect(statSync(first?.gitDir ?? "").mode & 0o777).toBe(0o700);
    expect(bash(repo.cacheDir, "ls stores").trim().split("\n")).toHaveLength(1);
  });

  test("a linked work tree shares the store, another repository does not", async () => {
    repo.sh("git worktree add -q ../linked -b other; git clone -q . ../clone");
    const [main, linked, clone] = await Promise.all(
      ["my %41 repo:é/src", "linked", "clone"].map((name) =>
        openObjectStore({ cacheDir: repo.cacheDir, repository: join(repo.root, name) }),
      ),
    );
    expect(linked?.gitDir).toBe(main?.gitDir);
    expect(clone?.gitDir).not.toBe(main?.gitDir);
  });
});

describe("importCommit", () => {
  test("leaves the person's repository byte for byte as it was", async () => {
    repo.sh(
      "printf 'exit 1\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/*; git config commit.gpgsign true; echo dirty >> src/a.txt",
    );
    const listing = () =>
      repo.sh(
        "find . -printf '%p %y %m %s %T@ %C@ %i\\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum",
      );
    const before = listing();
    const store = await open();
    const head = repo.sh("git rev-parse HEAD").trim();
    await store.importCommit(repo.repository, head, 1);
    await store.snapshot({
      baseCommit: head,
      parents: [],
      repository: repo.repository,
      filter: { include: [], exclude: [], tests: "all", keywords: [], history: 1, extra: [".env"] },
    });
    expect(listing()).toBe(before);
  });

  test("takes the commit alone, more on request, and everything for 0", async () => {
    for (const name of ["two", "three", "four"]) {
      repo.sh(`echo ${name} > file`);
      repo.commit(name);
    }
    const head = repo.sh("git rev-parse HEAD").trim();
    const store = await open();
    const count = async () => Number(await gitText(store.gitDir, ["rev-list", "--count", head]));
    await store.importCommit(repo.repository, head, 1);
    expect(await count()).toBe(1);
    await store.importCommit(repo.repository, head, 2);
    expect(await count()).toBe(2);
    await store.importCommit(repo.repository, head, 0);
    expect(await count()).toBe(4);
    await store.importCommit(repo.repository, head, 1);
    expect(await count()).toBe(4);
  });

  test("twenty at once import two commits without a collision", async () => {
    const first = repo.sh("git rev-parse HEAD").trim();
    repo.sh("echo 2 > second");
    const second = repo.commit("second");
    const stores = await Promise.all([open(), open()]);
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        stores[index % 2]?.importCommit(repo.repository, index % 3 === 0 ? first : second, 1),
      ),
    );
    const refs = await gitText(stores[0]?.gitDir ?? "", ["for-each-ref", "--format=%(objectname)"]);
    expect(refs.split("\n").sort()).toEqual([first, second].sort());
  });

  test("works from a shallow clone and in SHA-256", async () => {
    repo.sh(
      'echo 2 > second; git add -A; git commit -qm second; git clone -q --depth 1 file://"$PWD" ../shallow 2>/dev/null || git clone -q --depth 1 --no-local . ../shallow',
    );
    const shallow = join(repo.root, "shallow");
    const head = bash(shallow, "git rev-parse HEAD").trim();
    const store = await openObjectStore({ cacheDir: repo.cacheDir, repository: shallow });
    await store.importCommit(shallow, head, 0);
    expect(await gitText(store.gitDir, ["cat-file", "-t", head])).toBe("commit");

    const other = createTemporaryRepository(ODD_FILES, { objectFormat: "sha256" });
    try {
      const wide = await openObjectStore({ cacheDir: other.cacheDir, repository: other.repository });
      const commit = other.sh("git rev-parse HEAD").trim();
      await wide.importCommit(other.repository, commit, 1);
      expect(commit).toHaveLength(64);
      expect(await gitText(wide.gitDir, ["cat-file", "-t", commit])).toBe("commit");
    } finally {
      other.dispose();
    }
  });

  test("says which commit could not be read", async () => {
    const store = await open();
    await expect(store.importCommit(repo.repository, "1".repeat(40), 1)).rejects.toMatchObject({
      code: "workspace-failed",
      data: { commit: "1".repeat(40) },
    });
    await expect(store.importCommit(repo.repository, "--upload-pack=x", 1)).rejects.toMatchObject({
      code: "usage",
    });
  });

  test("reads a repository of another owner that the person allowed, and runs nothing it names", async () => {
    const head = repo.sh("git rev-parse HEAD").trim();
    const marker = join(repo.root, "ran");
    repo.sh(
      `git config uploadpack.packObjectsHook 'touch ${marker};'; git config core.fsmonitor 'touch ${marker}'; chown -R 1234 .`,
    );
    const home = process.env["HOME"];
    process.env["HOME"] = repo.root;
    try {
      await expect(open()).rejects.toMatchObject({ code: "repository-refused", data: { ownerUid: 1234 } });
      bash(repo.root, `git config --global --add safe.directory '${repo.repository}'`);
      const store = await open();
      await store.importCommit(repo.repository, head, 1);
      expect(await gitText(store.gitDir, ["cat-file", "-t", head])).toBe("commit");
      expect(existsSync(marker)).toBe(false);
    } finally {
      if (home === undefined) delete process.env["HOME"];
      else process.env["HOME"] = home;
    }
  });
});

describe("readFile", () => {
  test("gives content, blob and mode, and null for what is no file", async () => {
    const store = await open();
    const head = repo.sh("git rev-parse HEAD").trim();
    await store.importCommit(repo.repository, head, 1);
    const file = await store.readFile(head, "run.sh");
    expect(file).toMatchObject({ mode: "100755", blob: repo.sh("git rev-parse HEAD:run.sh").trim() });
    expect(file?.content.toString()).toBe("#!/bin/sh\n");
    expect(await store.readFile(head, "src")).toBeNull();
    expect(await store.readFile(head, "link")).toBeNull();
    expect(await store.readFile(head, "*.sh")).toBeNull();
    expect(await store.readFile(head, "../x")).toBeNull();
  });
});
