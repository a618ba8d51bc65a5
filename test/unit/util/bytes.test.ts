import { describe, expect, test } from "vitest";
import { BYTES_PATTERN, formatBytes, parseBytes } from "../../../src/util/bytes.ts";

describe("parseBytes", () => {
  test.each([
    ["512m", 512 * 1024 ** 2],
    ["2GiB", 2 * 1024 ** 3],
    ["1.5 g", 1.5 * 1024 ** 3],
    ["10MB", 10 * 1024 ** 2],
    ["7kib", 7 * 1024],
    ["1T", 1024 ** 4],
    ["4096", 4096],
    ["12b", 12],
    ["0", 0],
    [4096, 4096],
  ])("reads %j", (written, bytes) => {
    expect(parseBytes(written)).toBe(bytes);
  });

  test.each([
    "12 elephants",
    "",
    "m",
    "-1m",
    "1e3",
    "1,5g",
    "NaN",
    "1gg",
    -1,
    Number.NaN,
    1e300,
    "9999999999t",
  ])("refuses %j", (written) => {
    expect(parseBytes(written)).toBeNull();
  });

  test("the pattern given to editors needs no flags", () => {
    expect(BYTES_PATTERN.flags).toBe("");
  });
});

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1536, "1.5 KiB"],
  [1024 ** 3, "1 GiB"],
  [5 * 1024 ** 5, "5120 TiB"],
])("formatBytes(%d) is %s", (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});
