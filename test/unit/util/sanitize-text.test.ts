import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { quotePath, sanitizeForTerminal } from "../../../src/util/sanitize-text.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not come through.
const STEERS = /[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Cs}/u;

describe("sanitizeForTerminal", () => {
  test.each([
    ["colours", "a\u001b[1;31mred\u001b[0mb", "aredb"],
    ["cursor movement and erasing", "a\u001b[2J\u001b[Hb\u001b[3Ac", "abc"],
    ["window title", "a\u001b]0;owned\u0007b", "ab"],
    ["clipboard", "a\u001b]52;c;ZXZpbA==\u001b\\b", "ab"],
    ["hyperlink", "\u001b]8;;http://evil\u001b\\click\u001b]8;;\u001b\\", "click"],
    ["device control string", "a\u001bP$q\u001b\\b", "ab"],
    ["8-bit introducer", "a\u009b31mb", "ab"],
    ["unfinished introducer", "a\u001b[", "a"],
    ["unfinished title", "a\u001b]0;rest", "a0;rest"],
    ["an escape made by removing another", "a\u001b\u001b[0m[31mb", "a[31mb"],
    ["backspaces over a command", "rm -rf\b\b\b\b\b\bls", "rm -rfls"],
    ["bidi override", "user\u202eexe.txt\u202c", "userexe.txt"],
    ["bidi isolates", "a\u2066b\u2069c", "abc"],
    ["tag characters", "a\u{e0041}\u{e007f}b", "ab"],
    ["lone surrogate", "a\ud800b", "a\ufffdb"],
    ["line ends and tabs", "a\r\nb\tc", "a b c"],
    ["emoji with joiners, accents, Persian with its joiner", "👩‍💻 é می‌خواهم", "👩‍💻 é می‌خواهم"],
  ])("%s", (_, hostile, shown) => {
    expect(sanitizeForTerminal(hostile)).toBe(shown);
  });

  test("nothing that steers a terminal comes through, whatever the text", () => {
    const nasty = fc.constantFrom(
      "\u001b",
      "[",
      "]",
      "0;",
      "m",
      "\u0007",
      "\\",
      "\u009b",
      "\u202e",
      "x",
      "\r",
      "\n",
      "\ud83d",
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary" }),
          fc.array(nasty).map((p) => p.join("")),
        ),
        (text) => {
          expect(sanitizeForTerminal(text)).not.toMatch(STEERS);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("a block keeps its lines and tabs", () => {
    expect(sanitizeForTerminal("a\n\tb\u001b[0m\r\n", { multiline: true })).toBe("a\n\tb\n");
  });

  test("long text is cut and marked, and costs what is shown, not what was sent", () => {
    expect(sanitizeForTerminal("abcdef", { maxChars: 3 })).toBe("abc…");
    const start = performance.now();
    expect(sanitizeForTerminal("\u001b]".repeat(5_000_000))).toMatch(/^\]*…?$/);
    expect(sanitizeForTerminal("\u001b]".repeat(1_000_000), { multiline: true })).toHaveLength(0);
    expect(performance.now() - start).toBeLessThan(2000);
  });
});

describe("quotePath", () => {
  test("shows as an escape what would be invisible, and leaves other names as they are", () => {
    expect(quotePath("src/größe 日本.ts")).toBe("src/größe 日本.ts");
    expect(quotePath("a\nb")).toBe('"a\\x0ab"');
    expect(quotePath("safe\u202etxt.exe")).toBe('"safe\\u{202e}txt.exe"');
  });
});
