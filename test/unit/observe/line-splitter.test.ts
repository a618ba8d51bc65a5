import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createLineSplitter } from "../../../src/observe/line-splitter.ts";

describe("createLineSplitter", () => {
  test("gives the same lines however the bytes are cut", () => {
    const piece = fc.constantFrom("a", "ü", "😀", "\r", "\n", "\r\n", "\u001b[31m", " ");
    fc.assert(
      fc.property(fc.array(piece), fc.integer({ min: 1, max: 5 }), (pieces, size) => {
        const bytes = Buffer.from(pieces.join(""));
        const whole = createLineSplitter();
        const expected = [...whole.push(bytes), ...whole.end()];
        const cut = createLineSplitter();
        const lines: string[] = [];
        for (let at = 0; at < bytes.length; at += size)
          lines.push(...cut.push(bytes.subarray(at, at + size)));
        lines.push(...cut.end());
        expect(lines).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  test("shows the newest state of a progress bar, and a prompt without a line end", () => {
    const splitter = createLineSplitter();
    splitter.push("10%\r20%\r30%");
    expect(splitter.last).toBe("30%");
    splitter.push("\r");
    expect(splitter.last).toBe("30%");
    splitter.push("\nContinue? ");
    expect(splitter.last).toBe("Continue? ");
  });

  test("bounds a line that never ends, marks it, and goes on with the next", () => {
    const splitter = createLineSplitter({ maxLineChars: 10 });
    expect(splitter.push("x".repeat(1_000_000))).toEqual([]);
    expect(splitter.push("yyy\nnext\n")).toEqual([`${"x".repeat(10)}…`, "next"]);
  });

  test("invalid UTF-8 is replaced, and what steers a terminal is taken out", () => {
    const splitter = createLineSplitter();
    expect(splitter.push(Buffer.from([0x61, 0xff, 0x62, 0x0a]))).toEqual(["a\ufffdb"]);
    expect(splitter.push("\u001b]0;title\u0007ok\u001b[2J\n")).toEqual(["ok"]);
  });
});
