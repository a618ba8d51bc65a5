import fc from "fast-check";
import ignore from "ignore";
import { describe, expect, test } from "vitest";
import { createIgnoreRules } from "../../../../src/workspace/import/ignore-rules.ts";

function rules(files: Record<string, string>, exclude = ""): ReturnType<typeof createIgnoreRules> {
  const made = createIgnoreRules(exclude);
  for (const [directory, text] of Object.entries(files)) made.addFile(directory, Buffer.from(text, "utf8"));
  return made;
}
const key = (path: string) => Buffer.from(path, "utf8").toString("latin1");

describe("one file", () => {
  test.each<[string, string, boolean]>([
    ["*.log", "a.log", true],
    ["*.log", "d/a.log", true],
    ["/a", "d/a", false],
    ["a/b", "a/b", true],
    ["a/b", "x/a/b", false],
    ["**/a", "x/y/a", true],
    ["a/**", "a", false],
    ["a/**", "a/x/y", true],
    ["a/**/b", "a/b", true],
    ["a/**/b", "a/x/y/b", true],
    ["dir/", "dir", false],
    ["dir/", "dir/x", true],
    ["*", "a", true],
    ["*\n!a", "a", false],
    ["d\n!d/a", "d/a", true],
    ["d/*\n!d/a", "d/a", false],
    ["[a-c]x", "bx", true],
    ["[!a-c]x", "bx", false],
    ["[]x]", "]", true],
    ["[[:digit:]]", "7", true],
    ["[a", "[a", false],
    ["a\\*", "a*", true],
    ["a\\*", "ab", false],
    ["\\#a", "#a", true],
    ["\\!a", "!a", true],
    ["#a", "#a", false],
    ["a ", "a", true],
    ["a\\ ", "a ", true],
    ["a\r", "a", true],
    ["\u00fc?", "\u00fc1", true],
    ["a?b", "a/b", false],
    ["a*b", "a/b", false],
    ["A", "a", false],
    ["\ufeffa", "a", true],
    ["a\\", "a", false],
  ])("%j on %j: %s", (pattern, path, expected) => {
    expect(rules({ "": pattern }).isIgnored(key(path), false)).toBe(expected);
  });

  test("agrees with the `ignore` package", () => {
    const part = fc.constantFrom("a", "b", "ab", "*", "?", "a*", "*b", "**", "[ab]", "x.y", "*.y");
    const pattern = fc
      .tuple(
        fc.constantFrom("", "!", "/"),
        fc.array(part, { minLength: 1, maxLength: 4 }),
        fc.constantFrom("", "/"),
      )
      .map(([head, parts, tail]) => head + parts.join("/") + tail);
    const path = fc
      .array(fc.constantFrom("a", "b", "ab", "ba", "x.y"), { minLength: 1, maxLength: 4 })
      .map((parts) => parts.join("/"));
    fc.assert(
      fc.property(fc.array(pattern, { maxLength: 4 }), path, (patterns, candidate) => {
        // The package takes a pattern of only stars and slashes apart differently from git; `check-ignore` is asked in the integration test.
        fc.pre(
          patterns.every(
            (text) =>
              /[abxy?]/.test(text) && !/\*\*\/?$/.test(text) && !/\*\*./.test(text.replaceAll("**/", "")),
          ),
        );
        const theirs = ignore({ ignorecase: false }).add(patterns).ignores(candidate);
        expect([patterns, candidate, rules({ "": patterns.join("\n") }).isIgnored(candidate, false)]).toEqual(
          [patterns, candidate, theirs],
        );
      }),
      { numRuns: 2000 },
    );
  });
});

describe("several files", () => {
  test("the nearest wins, and nothing below an ignored directory comes back", () => {
    const made = rules({ "": "*.tmp\n/out/\n", d: "!*.tmp\n", "d/e": "x.tmp", out: "!*\n" }, "*.me\n");
    const answers = ["a.tmp", "d/a.tmp", "d/e/x.tmp", "d/e/y.tmp", "out/a", "d/out/a", "x.me", "d/x.me"].map(
      (path) => made.isIgnored(path, false),
    );
    expect(answers).toEqual([true, false, true, false, true, false, true, true]);
  });
});

describe("hostile patterns", () => {
  test("cost no more than their length times the path's", () => {
    const doubles = `${"**/a/".repeat(100)}**/b`;
    const singles = `${"*a".repeat(200)}b`;
    const made = rules({ "": `${doubles}\n${singles}\n`.repeat(50) });
    const started = performance.now();
    expect(made.isIgnored(`${"a/".repeat(200)}c`, false)).toBe(false);
    expect(made.isIgnored("a".repeat(255), false)).toBe(false);
    expect(performance.now() - started).toBeLessThan(2000);
  });

  test("the work over a whole tree is bounded; past it nothing is ignored", () => {
    const made = rules({ "": `${"*a*".repeat(300)}\n`.repeat(4000) });
    const started = performance.now();
    for (let index = 0; index < 3000; index += 1) made.isIgnored(`${"a".repeat(200)}${index}`, false);
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});
