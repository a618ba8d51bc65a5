import { describe, expect, test } from "vitest";
import { CAP_NAMES, type CapName, type Caps } from "../../../src/model/caps.ts";
import { type CapReading, type CapReadings, judgeCaps, unenforcedCaps } from "../../../src/policy/caps.ts";

const CAPS: Caps = {
  cpus: 0.5,
  memoryBytes: 1_000_000,
  swapBytes: 0,
  pids: 64,
  openFiles: 100,
  diskBytes: 100 * 1024 ** 2,
  tmpBytes: 500,
  ioReadBytesPerSecond: null,
  ioWriteBytesPerSecond: 10,
  ioReadOpsPerSecond: null,
  ioWriteOpsPerSecond: null,
};

function judge(cap: CapName, reading: CapReading) {
  const readings = Object.fromEntries(CAP_NAMES.map((name) => [name, { actual: null }])) as Record<
    CapName,
    CapReading
  >;
  const all: CapReadings = { ...readings, [cap]: reading };
  return judgeCaps(CAPS, all).find((report) => report.cap === cap);
}

describe("judgeCaps", () => {
  test("reports every cap once, in the order of the names", () => {
    const readings = Object.fromEntries(CAP_NAMES.map((name) => [name, { actual: 0 }])) as Record<
      CapName,
      CapReading
    >;
    expect(judgeCaps(CAPS, readings).map(({ cap }) => cap)).toEqual(CAP_NAMES);
  });

  test.each<[string, CapName, number | null, string]>([
    ["the asked value", "memory", 1_000_000, "enforced"],
    ["a tighter one", "memory", 999_424, "enforced"],
    ["what the kernel rounds up to", "cpus", 0.503, "enforced"],
    ["a looser one", "pids", 65, "not-enforced"],
    ["no limit", "pids", Number.POSITIVE_INFINITY, "not-enforced"],
    ["zero where zero was asked", "swap", 0, "enforced"],
    ["anything where zero was asked", "swap", 4_096, "not-enforced"],
    ["what cannot be read", "openFiles", null, "not-enforced"],
    ["a file system with its bookkeeping", "disk", 109 * 1024 ** 2, "enforced"],
    ["a file system of another size", "disk", 112 * 1024 ** 2, "not-enforced"],
    ["something where nothing was asked", "ioReadBytes", 5, "not-requested"],
  ])("%s", (_, cap, actual, state) => {
    expect(judge(cap, { actual })).toMatchObject({ cap, actual, state });
  });

  test("a small file system may show a few fixed blocks more", () => {
    const caps = { ...CAPS, diskBytes: 16 * 1024 ** 2 };
    const states = [18.1, 19.5].map((mib) => {
      const readings = Object.fromEntries(CAP_NAMES.map((name) => [name, { actual: mib * 1024 ** 2 }]));
      return judgeCaps(caps, readings as unknown as CapReadings).find(({ cap }) => cap === "disk")?.state;
    });
    expect(states).toEqual(["enforced", "not-enforced"]);
  });

  test("keeps the reader's note, and has one of its own where a cap is not enforced", () => {
    expect(judge("memory", { actual: 1, note: "why" })?.note).toBe("why");
    expect(judge("memory", { actual: null })?.note).toBe("not readable");
    expect(judge("memory", { actual: 2_000_000 })?.note).toContain("looser");
    expect(judge("memory", { actual: 1 })?.note).toBeUndefined();
  });

  test("unenforcedCaps leaves out what was not asked for", () => {
    const readings = Object.fromEntries(CAP_NAMES.map((name) => [name, { actual: null }])) as Record<
      CapName,
      CapReading
    >;
    expect(unenforcedCaps(judgeCaps(CAPS, readings)).map(({ cap }) => cap)).not.toContain("ioReadBytes");
  });
});
