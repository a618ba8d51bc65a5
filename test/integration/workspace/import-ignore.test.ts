import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createIgnoreRules } from "../../../src/workspace/import/ignore-rules.ts";
import { isGitLike } from "../../../src/workspace/path-bytes.ts";

let repository: string;
beforeAll(() => {
  repository = mkdtempSync(join(tmpdir(), "bh-ignore-"));
  execFileSync("git", ["init", "-q", repository]);
  mkdirSync(join(repository, "a"));
});
afterAll(() => rmSync(repository, { recursive: true }));

/** What git itself answers; it counts a path as ignored when a directory above it is. */
function askGit(paths: readonly string[]): Set<string> {
  const git = spawnSync(
    "git",
    ["-C", repository, "check-ignore", "--no-index", "-z", "-v", "-n", "--stdin"],
    {
      input: paths.map((path) => `${path}\0`).join(""),
      encoding: "latin1",
    },
  );
  const fields = git.stdout.split("\0");
  const ignored = new Set<string>();
  for (let at = 0; at + 3 < fields.length; at += 4) {
    const pattern = fields[at + 2] ?? "";
    if (pattern !== "" && !pattern.startsWith("!")) ignored.add(fields[at + 3] ?? "");
  }
  return ignored;
}

test("the ignore rules agree with git, two files deep", () => {
  const part = fc.constantFrom(
    "a",
    "b",
    "ab",
    "*",
    "?",
    "a*",
    "*b",
    "**",
    "[ab]",
    "[!a]",
    "***",
    "?**",
    "\\a",
    "[[:alpha:]]*",
    "",
  );
  const line = fc
    .tuple(
      fc.constantFrom("", "", "!", "/"),
      fc.array(part, { minLength: 1, maxLength: 4 }),
      fc.constantFrom("", "/", " ", "\r"),
    )
    .map(([head, parts, tail]) => head + parts.join("/") + tail);
  const lines = fc.array(line, { maxLength: 5 }).map((all) => all.join("\n"));
  const names = ["a", "b", "ab", "ba"];
  const paths = names.flatMap((x) => [
    x,
    ...names.flatMap((y) => [`${x}/${y}`, ...names.map((z) => `${x}/${y}/${z}`)]),
  ]);
  fc.assert(
    fc.property(lines, lines, (top, inner) => {
      writeFileSync(join(repository, ".gitignore"), top);
      writeFileSync(join(repository, "a/.gitignore"), inner);
      const rules = createIgnoreRules();
      rules.addFile("", Buffer.from(top));
      rules.addFile("a", Buffer.from(inner));
      // git takes a path for a file unless a directory of that name is there; `a` is the only one.
      const ours = new Set(paths.filter((path) => rules.isIgnored(path, path === "a")));
      expect({ top, inner, ignored: ours }).toEqual({ top, inner, ignored: askGit(paths) });
    }),
    { numRuns: 400, seed: 20_261_130 },
  );
});

test("names that git refuses to track are refused here too", () => {
  const blob = execFileSync("git", ["-C", repository, "hash-object", "-w", "--stdin"], {
    input: "x",
    encoding: "utf8",
  }).trim();
  const names = [
    ...[
      ".git",
      ".GIT",
      "git~1",
      "GIT~1",
      ".git ",
      ".git.",
      ".git...",
      ".git:s",
      "x\\.git",
      ".g\u200cit",
      ".gi\u206at",
    ],
    ...["git", ".gitx", "git~2", ".gitignore", "x.git", "a\\b", ".git~1", " .git", "\u200c"],
  ];
  const refused = names.filter((name) => {
    const info = `100644,${blob},d/${name}`;
    const config = ["-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"];
    return (
      spawnSync("git", ["-C", repository, ...config, "update-index", "--add", "--cacheinfo", info]).status !==
      0
    );
  });
  expect(names.filter((name) => isGitLike(Buffer.from(name)))).toEqual(refused);
});
