import { describe, expect, test } from "vitest";
import {
  checkPreflight,
  DEFAULT_PREFLIGHT_LIMITS,
  type DiskMeasure,
  type PreflightMeasures,
} from "../../../src/policy/preflight.ts";

const GIB = 1024 ** 3;
const disk = (over: Partial<DiskMeasure> = {}): DiskMeasure => ({
  role: "state directory",
  path: "/var/lib/state",
  totalBytes: 100 * GIB,
  availableBytes: 40 * GIB,
  usedPercent: 60,
  inodesUsedPercent: 10,
  ...over,
});
const measures = (over: Partial<PreflightMeasures> = {}): PreflightMeasures => ({
  disks: [disk()],
  memoryTotalBytes: 24 * GIB,
  memoryAvailableBytes: 16 * GIB,
  engine: { endpoint: "unix:///var/run/docker.sock", tried: [] },
  images: [{ name: "bulkhead/agent:latest", isPresent: true }],
  ...over,
});
const limits = { ...DEFAULT_PREFLIGHT_LIMITS, slots: 4, memoryBytesPerSlot: GIB };

describe("checkPreflight", () => {
  test("finds nothing on a fit machine", () => {
    expect(checkPreflight(measures(), limits)).toEqual([]);
  });

  test("refuses a disk over the limit and names path, limit, value and next step", () => {
    const [problem, ...rest] = checkPreflight(measures({ disks: [disk({ usedPercent: 85.04 })] }), limits);
    expect(rest).toEqual([]);
    expect(problem).toMatchObject({ thing: "disk", severity: "refuse", limit: 85, value: 85.04 });
    expect(problem?.message).toContain(
      "state directory /var/lib/state is 85.0 % full, over the limit of 85 %",
    );
    expect(problem?.message).toContain("40 GiB of 100 GiB free");
    expect(problem?.hint).toContain("bulkhead gc");
  });

  test("lets a disk exactly at the limit pass, and takes a limit of the person's own", () => {
    expect(checkPreflight(measures({ disks: [disk({ usedPercent: 85 })] }), limits)).toEqual([]);
    const strict = { ...limits, maxDiskPercent: 50 };
    expect(checkPreflight(measures(), strict).map(({ thing }) => thing)).toEqual(["disk"]);
  });

  test("judges each file system, and inodes apart from bytes", () => {
    const disks = [
      disk({ inodesUsedPercent: 99 }),
      disk({ role: "cache directory", path: "/c", usedPercent: 90 }),
    ];
    const found = checkPreflight(measures({ disks }), limits);
    expect(found.map(({ thing, limit }) => [thing, limit])).toEqual([
      ["inodes", 95],
      ["disk", 85],
    ]);
  });

  test("does not judge inodes where the file system has no fixed number", () => {
    expect(checkPreflight(measures({ disks: [disk({ inodesUsedPercent: null })] }), limits)).toEqual([]);
  });

  test.each([
    { available: 4 * GIB, expected: null },
    { available: 4 * GIB - 1, expected: "warn" },
    { available: 1.5 * GIB, expected: "warn" },
    { available: 1 * GIB, expected: "warn" },
    { available: 1 * GIB - 1, expected: "refuse" },
  ])("4 attempts of 1 GiB with $available bytes available: $expected", ({ available, expected }) => {
    const [problem] = checkPreflight(measures({ memoryAvailableBytes: available }), limits);
    expect(problem?.severity ?? null).toBe(expected);
  });

  test("refuses caps that add up to more than the allowed multiple, and says how many would fit", () => {
    const many = { ...limits, slots: 300, memoryBytesPerSlot: GIB / 2 };
    const [problem] = checkPreflight(measures({ memoryAvailableBytes: 20 * GIB }), many);
    expect(problem).toMatchObject({ thing: "memory", severity: "refuse", value: 150 * GIB, limit: 80 * GIB });
    expect(problem?.hint).toContain("at most 160 at once");
    const bold = { ...many, maxMemoryOvercommit: 10 };
    expect(checkPreflight(measures({ memoryAvailableBytes: 20 * GIB }), bold)[0]?.severity).toBe("warn");
  });

  test("does not judge memory that the kernel does not tell", () => {
    expect(checkPreflight(measures({ memoryAvailableBytes: null }), { ...limits, slots: 9999 })).toEqual([]);
  });

  test("refuses without an engine and says where it looked", () => {
    const engine = { endpoint: null, tried: ["unix:///var/run/docker.sock: no such socket"] };
    const [problem] = checkPreflight(measures({ engine }), limits);
    expect(problem).toMatchObject({ thing: "engine", severity: "refuse" });
    expect(problem?.message).toContain("/var/run/docker.sock: no such socket");
    expect(problem?.hint).toContain("bulkhead setup");
  });

  test("names each missing image", () => {
    const images = [
      { name: "a:1", isPresent: false },
      { name: "b:1", isPresent: true },
      { name: "c:1", isPresent: false },
    ];
    const found = checkPreflight(measures({ images }), limits);
    expect(found.map(({ message }) => message)).toEqual([
      "the engine does not have the image a:1",
      "the engine does not have the image c:1",
    ]);
  });

  test("puts refusals before warnings", () => {
    const found = checkPreflight(
      measures({
        memoryAvailableBytes: 2 * GIB,
        images: [{ name: "a:1", isPresent: false }],
        disks: [disk({ usedPercent: 99 })],
      }),
      limits,
    );
    expect(found.map(({ severity }) => severity)).toEqual(["refuse", "refuse", "warn"]);
  });

  test("refuses a runtime that the engine does not list, and names those it has", () => {
    const known = ["crun", "runc"];
    expect(checkPreflight(measures({ runtimes: { asked: ["runc"], known } }), limits)).toEqual([]);
    const [problem, ...rest] = checkPreflight(
      measures({ runtimes: { asked: ["kata", "crun"], known } }),
      limits,
    );
    expect(rest).toEqual([]);
    expect(problem).toMatchObject({ thing: "runtime", severity: "refuse" });
    expect(problem?.message).toBe("the engine does not list the OCI runtime kata; it has crun, runc");
  });

  test("only doubts a runtime that the engine may know without listing it", () => {
    const shim = { asked: ["io.containerd.kata.v2"], known: ["runc"] };
    expect(checkPreflight(measures({ runtimes: shim }), limits)[0]?.severity).toBe("warn");
    const untold = { asked: ["crun"], known: [] };
    expect(checkPreflight(measures({ runtimes: untold }), limits)[0]?.severity).toBe("warn");
  });

  test("refuses overlays that the person insists on and that cannot be had", () => {
    expect(checkPreflight(measures({ overlayRefusal: null }), limits)).toEqual([]);
    const [problem] = checkPreflight(measures({ overlayRefusal: "no root" }), limits);
    expect(problem).toMatchObject({
      thing: "workspace",
      severity: "refuse",
      message: "overlay workspaces cannot be had here: no root",
      hint: "use --workspace copy, or auto",
    });
  });
});
