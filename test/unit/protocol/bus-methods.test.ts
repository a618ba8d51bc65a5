import { describe, expect, test } from "vitest";
import { BUS_METHODS, MAX_MESSAGE_CHARS } from "../../../src/protocol/bus-methods.ts";
import { describeMethods } from "../../../src/protocol/describe-methods.ts";
import { ERROR_CODES, nameOfCode } from "../../../src/protocol/error-codes.ts";
import { nearestName } from "../../../src/protocol/nearest-name.ts";

const fitsPath = (path: string) => BUS_METHODS.get_file.params.safeParse({ task_id: "t", path }).success;
const fitsName = (name: string) => BUS_METHODS.put_artifact.params.safeParse({ name, content: "" }).success;

describe("get_file paths", () => {
  test.each([
    "a",
    "a/b",
    "..a",
    "a..b/c",
    ".gitignore",
    "a\nb",
    "größe/日本.txt",
    "-x",
    "a b",
    "x".repeat(4096),
  ])("%j is taken", (path) => expect(fitsPath(path)).toBe(true));

  test.each([
    "",
    "/a",
    "a//b",
    "../x",
    "a/..",
    "a/../b",
    "./a",
    "a/./b",
    "a/",
    "..",
    ".",
    "a\0b",
    "\ud800",
    "x".repeat(4097),
  ])("%j is refused", (path) => expect(fitsPath(path)).toBe(false));
});

describe("artifact names", () => {
  test.each(["a", "_x", "report 1.xml", "résumé.txt", "a..b", "日本.txt"])("%j is taken", (name) =>
    expect(fitsName(name)).toBe(true),
  );

  test.each(["", "a/b", "..", ".x", "-a", "a\n", "a\0", "a\\b", "x".repeat(81), "\u202Ecod.exe"])(
    "%j is refused",
    (name) => expect(fitsName(name)).toBe(false),
  );

  test("the longest one fits a file name of 255 bytes", () => {
    for (const letter of ["日", "𠀀", "é"]) {
      const name = letter.repeat(80 / letter.length);
      expect(fitsName(name)).toBe(true);
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
    }
  });
});

describe("messages and states", () => {
  const status = BUS_METHODS.status.params;

  test("a message is bounded and mended", () => {
    expect(status.safeParse({ state: "x", message: "m".repeat(MAX_MESSAGE_CHARS) }).success).toBe(true);
    expect(status.safeParse({ state: "x", message: "m".repeat(MAX_MESSAGE_CHARS + 1) }).success).toBe(false);
    expect(status.parse({ state: "x", message: "cut \ud83d" }).message).toBe("cut \u{FFFD}");
  });

  test("a state is one line that cannot draw on a terminal", () => {
    for (const state of ["", "a\nb", "\u001b[2J", "x".repeat(65)]) {
      expect(status.safeParse({ state }).success).toBe(false);
    }
    expect(status.safeParse({ state: "läuft noch" }).success).toBe(true);
  });

  test("percent lies between 0 and 100", () => {
    for (const percent of [-1, 101, "50", Number.NaN])
      expect(status.safeParse({ state: "x", percent }).success).toBe(false);
    for (const percent of [0, 33.3, 100])
      expect(status.safeParse({ state: "x", percent }).success).toBe(true);
  });
});

describe("the tables", () => {
  test("method names are snake_case and every params schema is closed", () => {
    const { methods } = describeMethods(BUS_METHODS, 1);
    expect(methods.map(({ name }) => name)).toEqual(Object.keys(BUS_METHODS));
    for (const { name, params, summary } of methods) {
      expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expect(summary).toMatch(/\.$/);
      expect(params["additionalProperties"]).toBe(false);
    }
  });

  test("no params schema has a field that could name the caller", () => {
    for (const [name, { params }] of Object.entries(BUS_METHODS)) {
      const fields = Object.keys(params.shape);
      for (const field of ["caller", "attempt", "run", "run_id", "runId"])
        expect(fields).not.toContain(field);
      if (name !== "get_file") expect(fields).not.toContain("task_id");
    }
  });

  test("a description fits its own schema", () => {
    expect(BUS_METHODS.describe.result.safeParse(describeMethods(BUS_METHODS, 1)).success).toBe(true);
  });

  test("codes are unique, ours outside the reserved range, each with a sentence", () => {
    const entries = Object.values(ERROR_CODES);
    expect(new Set(entries.map(({ code }) => code)).size).toBe(entries.length);
    for (const { code, meaning } of entries) {
      expect(meaning).toMatch(/\.$/);
      const isStandard = [-32700, -32600, -32601, -32602, -32603].includes(code);
      expect(isStandard || code < -32768 || code > -32000).toBe(true);
    }
    expect(nameOfCode(4005)).toBe("too-large");
    expect(nameOfCode(1)).toBeUndefined();
  });
});

describe("nearestName", () => {
  const known = Object.keys(BUS_METHODS);

  test.each([
    ["getFile", "get_file"],
    ["get-file", "get_file"],
    ["statuz", "status"],
    ["Ping", "ping"],
    ["put_artefact", "put_artifact"],
  ])("%s most likely meant %s", (typed, meant) => expect(nearestName(typed, known)).toBe(meant));

  test("does not guess wildly", () => {
    expect(nearestName("launch_missiles", known)).toBeUndefined();
    expect(nearestName("x".repeat(100_000), known)).toBeUndefined();
  });
});
