import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { judgeDisk, usedBelow, watchDisk } from "../../../src/executor/disk-watch.ts";
import type { SandboxExit } from "../../../src/sandbox/sandbox.ts";

const MIB = 1024 ** 2;
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "bh-watch-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const write = (name: string, bytes: number) => writeFileSync(join(directory, name), Buffer.alloc(bytes, 1));

describe("usedBelow", () => {
  test("counts blocks, a file with two names once, and follows no link", async () => {
    const empty = (await usedBelow(directory)) ?? 0;
    write("a", 2 * MIB);
    linkSync(join(directory, "a"), join(directory, "b"));
    symlinkSync("/usr", join(directory, "out"));
    writeFileSync(join(directory, "holes"), "");
    truncateSync(join(directory, "holes"), 900 * MIB);
    const used = ((await usedBelow(directory)) ?? 0) - empty;
    expect(used).toBeGreaterThanOrEqual(2 * MIB);
    expect(used).toBeLessThan(2.2 * MIB);
  });

  test("sums up whatever the names are; of what is not there it says nothing", async () => {
    mkdirSync(join(directory, "-x\n9999999999\t"));
    write("-x\n9999999999\t/--total\t", MIB);
    execFileSync("mkfifo", [join(directory, "pipe")]);
    const used = await usedBelow(directory);
    expect(used).toBeGreaterThanOrEqual(MIB);
    expect(used).toBeLessThan(2 * MIB);
    expect(await usedBelow(join(directory, "gone"))).toBeNull();
  });
});

describe("watchDisk", () => {
  test("tells once when it is over, at most once a second, and gives the peak", async () => {
    const looksMs: number[] = [];
    const over = Promise.withResolvers<void>();
    let told = 0;
    const sizes = [3, 8, 12, 2];
    const watch = watchDisk(
      async () => {
        looksMs.push(performance.now());
        return sizes[looksMs.length - 1] ?? 0;
      },
      10,
      () => {
        told += 1;
        over.resolve();
      },
    );
    await over.promise;
    expect(await watch.finish()).toBe(12);
    expect([told, looksMs.length]).toEqual([1, 3]);
    for (const [index, ms] of looksMs.slice(1).entries())
      expect(ms - (looksMs[index] ?? 0)).toBeGreaterThan(990);
  });

  test("looks once more at the end, and knows nothing where nothing could be measured", async () => {
    let calls = 0;
    const late = watchDisk(
      async () => 7 + calls++,
      10,
      () => expect.unreachable("not over"),
    );
    expect([await late.finish(), calls]).toEqual([7, 1]);
    const blind = watchDisk(
      () => Promise.reject(new Error("away")),
      10,
      () => expect.unreachable("not over"),
    );
    expect(await blind.finish()).toBeNull();
  });
});

describe("judgeDisk", () => {
  const use = {
    cpuMs: null,
    peakMemoryBytes: null,
    peakPids: null,
    pidsDenied: null,
    oomKills: null,
    ioReadBytes: null,
    ioWriteBytes: null,
  };
  const exit = (failure: SandboxExit["failure"], exitCode = 1): SandboxExit => ({
    exitCode,
    failure,
    use,
    mainMs: 1,
  });
  const watch = (peak: number | null) => ({ finish: async () => peak });
  const plain = { reason: "exit", fault: "agent", exitCode: 1 } as const;

  test("over the cap is disk-full after any plain end, also with code 0", async () => {
    for (const end of [exit(null, 0), exit(plain)]) {
      expect((await judgeDisk(end, watch(11), 10)).failure).toMatchObject({
        reason: "disk-full",
        by: "watch",
        limitBytes: 10,
        peakBytes: 11,
        place: "/workspace",
        exitCode: end.exitCode,
      });
    }
  });

  test("changes nothing at the cap, without a value, and for an end with another cause", async () => {
    const oom = exit(
      { reason: "oom", fault: "agent", victim: "main", limitBytes: 1, peakBytes: 1, exitCode: 137 },
      137,
    );
    for (const [end, peak] of [
      [exit(null, 0), 10],
      [exit(plain), null],
      [oom, 11],
    ] as const) {
      expect(await judgeDisk(end, watch(peak), 10)).toBe(end);
    }
  });
});
