import { describe, expect, test } from "vitest";
import { formatDuration, parseDurationMs } from "../../../src/util/duration.ts";

describe("parseDurationMs", () => {
  test.each([
    ["90s", 90_000],
    ["30m", 1_800_000],
    ["1h30m", 5_400_000],
    ["1.5h", 5_400_000],
    ["500ms", 500],
    ["2d", 172_800_000],
    ["45", 45_000],
    [45, 45_000],
    [0.5, 500],
  ])("reads %j", (written, ms) => {
    expect(parseDurationMs(written)).toBe(ms);
  });

  test.each(["", "fast", "10 minutes", "-5s", "1h 30m", "1w"])("refuses %j", (text) => {
    expect(parseDurationMs(text)).toBeNull();
  });

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY])("refuses the number %d", (seconds) => {
    expect(parseDurationMs(seconds)).toBeNull();
  });
});

test.each([
  [0, "0ms"],
  [40, "40ms"],
  [12_540, "12.5s"],
  [59_999, "59.9s"],
  [60_000, "1m"],
  [5_400_000, "1h 30m"],
  [90_061_000, "1d 1h"],
  [86_400_000, "1d"],
  [86_460_000, "1d"],
])("formatDuration(%d) is %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
