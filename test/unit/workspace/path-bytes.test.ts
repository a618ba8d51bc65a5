import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatPath,
  isGitLike,
  isGitmodulesLike,
  parsePath,
  quotePath,
  showPath,
  symlinkObjection,
} from "../../../src/workspace/path-bytes.ts";

const bytes = (text: string) => Buffer.from(text, "utf8");

describe("formatPath", () => {
  test("parsePath gives the same bytes back, whatever they are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1 }), (raw) => {
        const path = Buffer.from(raw);
        expect(parsePath(formatPath(path)).equals(path)).toBe(true);
        expect(parsePath(quotePath(path)).equals(path)).toBe(true);
      }),
    );
  });

  test("leaves text alone and quotes what is none", () => {
    expect(formatPath(bytes("docs/größe.md"))).toBe("docs/größe.md");
    expect(formatPath(Buffer.from([0x61, 0xff]))).toBe('"a\\377"');
    expect(formatPath(bytes('"a'))).toBe('"\\042a"');
  });

  test("showPath lets no control or direction character through, and cuts", () => {
    expect(showPath(bytes("a\u001b[2Jb"))).toBe('"a\\033[2Jb"');
    expect(showPath(bytes("a\u202eb"))).not.toContain("\u202e");
    expect(showPath(bytes("x".repeat(5000))).length).toBeLessThan(400);
  });
});

describe("isGitLike", () => {
  test.each([
    ".git",
    ".GIT",
    ".Git",
    "git~1",
    "GIT~1",
    ".git.",
    ".git ",
    ".git . .",
    ".git:x",
    "git~1 ",
    "a\\.git",
    ".g\u200cit",
    "\ufeff.git",
  ])("takes %j for git's own", (name) => expect(isGitLike(bytes(name))).toBe(true));
  test.each([".gitignore", ".gitattributes", "git", "git~2", ".gi", ".git-x", ".gitx", "x.git", "..git"])(
    "lets %j in",
    (name) => expect(isGitLike(bytes(name))).toBe(false),
  );
  test("knows the other names of .gitmodules", () => {
    for (const name of [".gitmodules", ".GITMODULES", "gitmod~1", ".gitmodules ", ".gitm\u200dodules"]) {
      expect(isGitmodulesLike(bytes(name))).toBe(true);
    }
    expect(isGitmodulesLike(bytes("gitmodules"))).toBe(false);
  });
});

describe("symlinkObjection", () => {
  test.each([
    ["a", "b"],
    ["d/a", "../b"],
    ["d/e/a", "../../b/c"],
    ["a", "./b//c/"],
    ["a", "."],
    ["d/a", ".."],
    ["a", "..."],
    ["a", ".gitignore"],
  ])("%s -> %s is fine", (path, target) => expect(symlinkObjection(bytes(path), bytes(target))).toBeNull());
  test.each([
    ["a", "/etc/passwd"],
    ["a", ".."],
    ["a", "../b"],
    ["d/a", "../../b"],
    ["a", "s/../.."],
    ["d/a", "./../../x"],
    ["d/a", "x/../y"],
    ["a", ".git/config"],
    ["d/a", "../.GIT"],
  ])("%s -> %s is refused", (path, target) =>
    expect(symlinkObjection(bytes(path), bytes(target))).toMatch(/target/),
  );
});
