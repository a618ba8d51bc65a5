import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { diffPatch } from "../../../src/workspace/diff-patches.ts";
import { findPatchRisks } from "../../../src/workspace/scan-risks.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "bh-risks-"));
  git("init", "-q");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function git(...args: string[]): string {
  return execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.org", ...args], {
    cwd: root,
    encoding: "utf8",
  }).trim();
}

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
}

function commit(): string {
  git("add", "-A");
  git("commit", "-q", "--allow-empty", "-m", "x");
  return git("rev-parse", "HEAD");
}

const scan = (parent: string, last: string, protect: readonly string[] = []) =>
  findPatchRisks(join(root, ".git"), { parent, commit: last }, protect);

describe("findPatchRisks", () => {
  test("paths, modes, contents and protected paths, by rule", async () => {
    const pack = { name: "x", scripts: { test: "t" } };
    write({ "a.txt": "a\n", "tool.sh": "x\n", "package.json": JSON.stringify(pack), "db/1.sql": "x\n" });
    write({ "quiet/package.json": JSON.stringify(pack) });
    const before = commit();
    write({
      "a.txt": "b\n",
      ".github/workflows/ci.yml": "x\n",
      "package.json": JSON.stringify({ ...pack, scripts: { test: "t", prepare: "evil" } }),
      "quiet/package.json": JSON.stringify({ ...pack, name: "y" }),
    });
    chmodSync(join(root, "tool.sh"), 0o755);
    symlinkSync("a.txt", join(root, "link"));
    rmSync(join(root, "db"), { recursive: true });
    symlinkSync("quiet", join(root, "db"));
    expect(await scan(before, commit(), ["/DB/", "*.toml"])).toEqual([
      { rule: "protected", files: 2, paths: ["db", "db/1.sql"] },
      { rule: "ci-config", files: 1, paths: [".github/workflows/ci.yml"] },
      { rule: "package-scripts", files: 1, paths: ["package.json"] },
      { rule: "executable-bit", files: 1, paths: ["tool.sh"] },
      { rule: "symlink", files: 2, paths: ["db", "link"] },
    ]);
  });

  test("nothing of an ordinary patch", async () => {
    write({ "src/a.ts": "1\n" });
    const before = commit();
    write({ "src/a.ts": "2\n", "src/b.ts": "3\n" });
    expect(await scan(before, commit(), ["docs/"])).toEqual([]);
  });

  test("a package.json that is too large to read, or a link, is flagged", async () => {
    write({ "a/package.json": "{}", "b/package.json": "{}" });
    const before = commit();
    write({ "a/package.json": JSON.stringify({ x: "y".repeat(2 * 1024 ** 2) }) });
    rmSync(join(root, "b/package.json"));
    symlinkSync("../a/package.json", join(root, "b/package.json"));
    const found = await scan(before, commit());
    const both = ["a/package.json", "b/package.json"];
    expect(found.find(({ rule }) => rule === "package-scripts")?.paths).toEqual(both);
  });

  test("of many files the first are named and all are counted", async () => {
    const before = commit();
    write(Object.fromEntries(Array.from({ length: 80 }, (_, index) => [`d${index}/Makefile`, "x:\n"])));
    const [found] = await scan(before, commit());
    expect(found).toMatchObject({ rule: "build-script", files: 80 });
    expect(found?.paths).toHaveLength(50);
  });
});

describe("diffPatch", () => {
  test("shows the paths it is told to first, whatever is in their names, and everything once", async () => {
    const before = commit();
    write({ "a.txt": "a\n", "m[1]*?\\x": "m\n", m1zzx: "no\n", "#hash": "h\n", "z\nline": "z\n", ü: "u\n" });
    write({ "zz/é.txt": "e\n" });
    const range = { parent: before, commit: commit() };
    const first = ["zz/é.txt", "#hash", "m[1]*?\\x", "z\nline"];
    const names = (await diffPatch(join(root, ".git"), range, { format: "names", first })).toString();
    expect(names).toBe('zz/é.txt\n#hash\n"m[1]*?\\\\x"\n"z\\nline"\na.txt\nm1zzx\nü\n');
    const patch = (await diffPatch(join(root, ".git"), range, { format: "patch", first })).toString();
    expect(patch.match(/^diff --git/gm)).toHaveLength(7);
    expect(patch.startsWith("diff --git a/zz/é.txt")).toBe(true);
  });
});
