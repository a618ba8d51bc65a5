import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { quoteShellWord, splitShellWords } from "../../../src/util/shell-words.ts";

describe("splitShellWords", () => {
  test.each<[string, string[]]>([
    [
      "--file src/auth.py --task 'Refactor the auth module'",
      ["--file", "src/auth.py", "--task", "Refactor the auth module"],
    ],
    ["", []],
    ["  \t\n ", []],
    ["a''b", ["ab"]],
    ["'' \"\"", ["", ""]],
    ['"a \\" \\$ \\` \\\\ \\n"', ['a " $ ` \\ \\n']],
    ["'a\\b'", ["a\\b"]],
    ["a\\ b", ["a b"]],
    ["a\\\nb", ["ab"]],
    ["$HOME * ~ `x` $(y) #z", ["$HOME", "*", "~", "`x`", "$(y)", "#z"]],
    ["--task='größer & 日本'", ["--task=größer & 日本"]],
    ["\\& '|' \";\"", ["&", "|", ";"]],
  ])("%j", (text, words) => {
    expect(splitShellWords(text)).toEqual({ ok: true, value: words });
  });

  test.each([
    ["a 'b", { kind: "unclosed-quote", quote: "'", offset: 2 }],
    ['"b\\"', { kind: "unclosed-quote", quote: '"', offset: 0 }],
    ["a \\", { kind: "trailing-backslash", offset: 2 }],
    ["npm test && npm run lint", { kind: "operator", operator: "&", offset: 9 }],
    ["cat a>b", { kind: "operator", operator: ">", offset: 5 }],
  ])("refuses %j", (text, error) => {
    expect(splitShellWords(text)).toEqual({ ok: false, error });
  });
});

test("what was quoted is read back as the same words", () => {
  const word = fc.oneof(fc.string({ unit: "binary" }), fc.string(), fc.stringMatching(/^['"\\ $`&|;<>\n]*$/));
  fc.assert(
    fc.property(fc.array(word), (words) => {
      expect(splitShellWords(words.map(quoteShellWord).join(" "))).toEqual({ ok: true, value: words });
    }),
  );
});
