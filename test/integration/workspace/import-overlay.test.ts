import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { diffPatch } from "../../../src/workspace/diff-patches.ts";
import { gitText } from "../../../src/workspace/git.ts";
import { setUpBase } from "./import-base.ts";
import { createImportRig, type ImportRig, sh } from "./import-rig.ts";

let rig: ImportRig;
beforeAll(async () => {
  rig = await createImportRig("overlay", setUpBase);
});
afterAll(() => rig.dispose());

describe("the commit", () => {
  test("names the attempt, its time, and what changed", async () => {
    const { outcome } = await rig.run((work) => {
      writeFileSync(join(work, "src/a.txt"), "a\nB\nc\nd\n");
      writeFileSync(join(work, "img/logo.bin"), Buffer.from([0, 9]));
      chmodSync(join(work, "README.md"), 0o755);
      sh(work, "rm src/b.txt; rm link; echo f > link; echo > $'in\\xff'; echo > '\"q'");
    });
    if (!outcome.ok) throw new Error("refused");
    const { value: patch } = outcome;
    expect(patch.files).toEqual([
      { path: '"\\042q"', kind: "added", mode: "100644", insertions: 1, deletions: 0 },
      { path: "README.md", kind: "mode-changed", mode: "100755", insertions: 0, deletions: 0 },
      { path: "img/logo.bin", kind: "modified", mode: "100644", insertions: null, deletions: null },
      { path: '"in\\377"', kind: "added", mode: "100644", insertions: 1, deletions: 0 },
      { path: "link", kind: "type-changed", mode: "100644", insertions: 1, deletions: 1 },
      { path: "src/a.txt", kind: "modified", mode: "100644", insertions: 2, deletions: 1 },
      { path: "src/b.txt", kind: "deleted", mode: null, insertions: 0, deletions: 1 },
    ]);
    const format = "--format=%an|%ae|%cn|%ct|%s|%(trailers:unfold,separator=%x3b)";
    expect(await gitText(rig.gitDir, ["log", "-1", format, patch.commit])).toBe(
      "docs_update|docs_update@bulkhead.invalid|bulkhead|1800000000|Update the docs: größer|" +
        "Bulkhead-Run: 20261130-142501-3f9a2c;Bulkhead-Task: docs_update;Bulkhead-Attempt: 2",
    );
    const ref = "refs/bulkhead/runs/20261130-142501-3f9a2c/docs_update/2";
    expect(await gitText(rig.gitDir, ["rev-parse", ref])).toBe(patch.commit);
    const patchText = await diffPatch(rig.gitDir, patch);
    expect(patchText.toString("latin1")).toContain("GIT binary patch");
    expect((await diffPatch(rig.gitDir, patch, { format: "names" })).toString()).toContain("src/a.txt\n");
    expect((await diffPatch(rig.gitDir, patch, { format: "stat", color: true })).toString()).toContain(
      "\u001b[",
    );
  });

  test("the patch text gives the same tree when it is applied elsewhere", async () => {
    const { outcome, oracle } = await rig.run(
      (work) => sh(work, "rm -r d; echo x > d; mv src moved; ln -s d l2"),
      { oracle: true },
    );
    if (!outcome.ok) throw new Error("refused");
    const index = join(rig.root, "replay.index");
    const env = { GIT_INDEX_FILE: index };
    await gitText(rig.gitDir, ["read-tree", rig.baseCommit], { env });
    await gitText(rig.gitDir, ["apply", "--cached", "--whitespace=nowarn", "-"], {
      env,
      input: await diffPatch(rig.gitDir, outcome.value),
    });
    expect(await gitText(rig.gitDir, ["write-tree"], { env })).toBe(oracle);
  });

  test("collected twice, it is the same commit", async () => {
    const change = (work: string): void => writeFileSync(join(work, "f"), "same");
    const [first, second] = [await rig.run(change), await rig.run(change)];
    expect(first.outcome).toEqual(second.outcome);
  });

  test("sha256 repositories", async () => {
    const wide = await createImportRig("overlay", setUpBase, "sha256");
    try {
      const { outcome, oracle } = await wide.run(
        (work) => sh(work, "echo 1 > f; rm -r d; rm old-absolute; ln -s /etc/hostname old-absolute"),
        { oracle: true },
      );
      expect(outcome).toMatchObject({ ok: true, value: { tree: oracle, files: { length: 4 } } });
    } finally {
      wide.dispose();
    }
  });
});

describe("layers", () => {
  /** A layer as a dependency's patch makes it: one file more, one changed, one gone. */
  const parent = (directory: string): void => {
    mkdirSync(join(directory, "d"));
    mkdirSync(join(directory, "src"));
    writeFileSync(join(directory, "d/parent"), "p\n");
    writeFileSync(join(directory, "src/a.txt"), "from the parent\n");
    execFileSync("mknod", [join(directory, "d/one"), "c", "0", "0"]);
    execFileSync("mknod", [join(directory, "src/deep"), "c", "0", "0"]);
  };
  const paths = async (change: (work: string) => void, layers = [parent]): Promise<string[]> => {
    const { outcome } = await rig.run(change, { layers });
    return outcome.ok ? outcome.value.files.map((file) => `${file.kind} ${file.path}`) : ["refused"];
  };

  // The rig's commit is the base alone, so what the layer added shows as added when it is copied up.
  test("what a layer deleted is not deleted again, what it added is", async () => {
    expect(await paths((work) => sh(work, "rm -rf d && mkdir d"))).toEqual([
      "deleted d/sub/three",
      "deleted d/two",
    ]);
    expect(await paths((work) => sh(work, "rm -rf src"))).toEqual([
      "deleted src/a.txt",
      "deleted src/b.txt",
      "deleted src/crlf.txt",
    ]);
    expect(await paths((work) => sh(work, "echo again > d/one"))).toEqual(["modified d/one"]);
  });

  test("a prepared layer of ignored files costs nothing and is never part of the patch", async () => {
    const prepared = (directory: string): void => {
      sh(directory, "mkdir -p node_modules/pkg; for i in $(seq 300); do echo $i > node_modules/pkg/$i; done");
    };
    expect(await paths((work) => sh(work, "echo x > node_modules/pkg/1; echo y > f"), [prepared])).toEqual([
      "added f",
    ]);
    expect(await paths((work) => sh(work, "rm -rf node_modules; echo y > f"), [prepared])).toEqual([
      "added f",
    ]);
    const { outcome } = await rig.run((work) => sh(work, "rm -rf node_modules; echo y > f"), {
      layers: [prepared],
      limits: { maxFiles: 5 },
    });
    expect(outcome).toMatchObject({ ok: true });
  });
});

test("a submodule stays as it is, and what is put into its directory is refused", async () => {
  const outer = await createImportRig("overlay", (directory) =>
    sh(
      directory,
      "echo 1 > f; git init -q mod; cd mod; echo m > m; git add m; git -c user.name=n -c user.email=n@n commit -q -m n",
    ),
  );
  try {
    const edit = await outer.run((work) => sh(work, "echo 2 > f; rm -rf mod/m"));
    expect(edit.outcome).toMatchObject({ ok: true, value: { files: [{ path: "f" }] } });
    const gone = await outer.run((work) => sh(work, "rm -rf mod"));
    expect(gone.outcome).toMatchObject({ ok: true, value: { empty: true } });
    await gitText(outer.gitDir, [
      "update-ref",
      "-d",
      "refs/bulkhead/runs/20261130-142501-3f9a2c/docs_update/2",
    ]);
    const put = await outer.run((work) => sh(work, "echo x > mod/x"));
    expect(put.outcome).toMatchObject({
      ok: false,
      error: { problems: [{ kind: "git-directory", path: "mod" }] },
    });
    expect(await gitText(outer.gitDir, ["for-each-ref"])).toBe("");
  } finally {
    outer.dispose();
  }
});

test("a directory renamed by a redirect comes out whole", async () => {
  // The upper directory then holds markers only; the merged view shows the files.
  const change = (work: string): void => {
    renameSync(join(work, "src"), join(work, "moved"));
    chmodSync(join(work, "README.md"), 0o755);
  };
  const { outcome, oracle } = await rig.run(change, { oracle: true, mountOptions: "redirect_dir=on" });
  expect(outcome).toMatchObject({ ok: true, value: { tree: oracle, files: { length: 9 } } });
});

test("a symlink swapped in for a directory leads nowhere, even without nosymfollow", async () => {
  const { outcome } = await rig.run((work) => {
    sh(work, "rm -rf src");
    symlinkSync("/etc", join(work, "src"));
  });
  expect(outcome).toMatchObject({
    ok: false,
    error: { problems: [{ kind: "symlink-outside", path: "src" }] },
  });
});

test("one small change takes two git processes, an untouched workspace one, and ignored files none more", async () => {
  const bin = join(rig.root, "bin");
  const log = join(rig.root, "git.log");
  mkdirSync(bin);
  const real = execFileSync("which", ["git"], { encoding: "utf8" }).trim();
  writeFileSync(join(bin, "git"), `#!/bin/sh\necho x >> ${log}\nexec ${real} "$@"\n`, { mode: 0o755 });
  const count = async (change: (work: string) => void): Promise<number> => {
    vi.stubEnv("PATH", `${bin}:${process.env["PATH"]}`);
    writeFileSync(log, "");
    const { outcome } = await rig.run(change);
    vi.unstubAllEnvs();
    expect(outcome.ok).toBe(true);
    // The rig lists the base commit once for the manifest.
    return readFileSync(log, "utf8").length / 2 - 1;
  };
  expect(await count((work) => writeFileSync(join(work, "f"), "1"))).toBe(2);
  expect(await count(() => undefined)).toBe(1);
  expect(await count((work) => sh(work, "mkdir dist; echo 1 > dist/a; echo 2 > x.log; echo 3 > f"))).toBe(2);
});
