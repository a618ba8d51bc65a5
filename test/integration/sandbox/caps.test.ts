import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CapName, CapReport } from "../../../src/model/caps.ts";
import { findBlockDevice } from "../../../src/sandbox/docker/block-device.ts";
import { MIB, openRig, type Rig } from "./rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await openRig();
});
afterAll(async () => {
  expect(await rig.leftovers()).toEqual([]);
  await rig.close();
});

function find(caps: readonly CapReport[], name: CapName): CapReport | undefined {
  return caps.find(({ cap }) => cap === name);
}

/** Runs something that lives until its caps were read. */
async function readBack(over: Parameters<Rig["spec"]>[1]): Promise<readonly CapReport[]> {
  const { caps } = await rig.run(rig.spec(["sleep", "60"], over), (running) => running.kill("cancelled"));
  return caps;
}

describe("caps are read back from the kernel", () => {
  test("each with its value", async () => {
    const caps = await readBack({
      caps: { cpus: 0.5, memoryBytes: 96 * MIB, swapBytes: 0, pids: 50, openFiles: 300, tmpBytes: 8 * MIB },
    });
    expect(find(caps, "cpus")).toMatchObject({ actual: 0.5, state: "enforced" });
    expect(find(caps, "memory")).toMatchObject({ actual: 96 * MIB, state: "enforced" });
    expect(find(caps, "swap")).toMatchObject({ actual: 0, state: "enforced" });
    expect(find(caps, "pids")).toMatchObject({ actual: 50, state: "enforced" });
    expect(find(caps, "openFiles")).toMatchObject({ actual: 300, state: "enforced" });
    expect(find(caps, "tmp")).toMatchObject({ actual: 8 * MIB, state: "enforced" });
    expect(find(caps, "disk")?.state).toBe("not-requested");
    expect(find(caps, "ioReadBytes")?.state).toBe("not-requested");
  });

  test("those of block IO too, with the limit of their reach", async () => {
    expect(await findBlockDevice(rig.directory)).toMatchObject({ path: expect.stringMatching(/^\/dev\//) });
    const caps = await readBack({
      ioDevicePath: rig.directory,
      caps: {
        ioReadBytesPerSecond: 10 * MIB,
        ioWriteBytesPerSecond: 5 * MIB,
        ioReadOpsPerSecond: 100,
        ioWriteOpsPerSecond: 50,
      },
    });
    expect(find(caps, "ioReadBytes")).toMatchObject({ actual: 10 * MIB, state: "enforced" });
    expect(find(caps, "ioWriteBytes")).toMatchObject({ actual: 5 * MIB, state: "enforced" });
    expect(find(caps, "ioReadOps")).toMatchObject({ actual: 100, state: "enforced" });
    expect(find(caps, "ioWriteOps")).toMatchObject({ actual: 50, state: "enforced" });
    if ((await rig.engine.describe()).cgroupVersion === 1) {
      expect(find(caps, "ioWriteBytes")?.note).toContain("direct writes only");
    }
  });

  test("a disk cap without a file system of its size is not enforced, and says so", async () => {
    const mounts = [{ type: "bind", source: rig.directory, target: "/workspace", readOnly: false }] as const;
    const over = { mounts, workingDir: "/workspace", caps: { diskBytes: 64 * MIB } };
    expect(find(await readBack(over), "disk")).toMatchObject({ state: "not-enforced", requested: 64 * MIB });
    expect(find(await readBack({ ...over, diskEnforced: null }), "disk")).toMatchObject({
      state: "not-enforced",
      actual: null,
      note: expect.stringContaining("no file system of its own"),
    });
  });

  test("a disk cap with one is enforced, and reaching it is told as its cause", async () => {
    const workspace = `${rig.directory}/limited`;
    mkdirSync(workspace);
    spawnSync("mount", ["-t", "tmpfs", "-o", `size=${8 * MIB},mode=0777`, "tmpfs", workspace]);
    try {
      const spec = rig.spec(["sh", "-c", "sleep 0.2; exec head -c 20000000 /dev/zero > /workspace/f"], {
        mounts: [{ type: "bind", source: workspace, target: "/workspace", readOnly: false }],
        workingDir: "/workspace",
        diskEnforced: { bytes: 8 * MIB },
        caps: { diskBytes: 8 * MIB },
      });
      const { caps, exit } = await rig.run(spec);
      expect(find(caps, "disk")).toMatchObject({ state: "enforced", actual: 8 * MIB });
      expect(exit.failure).toEqual({
        reason: "disk-full",
        fault: "agent",
        limitBytes: 8 * MIB,
        peakBytes: 8 * MIB,
        cap: "disk",
        place: "/workspace",
        of: "bytes",
        by: "kernel",
        exitCode: 1,
      });
    } finally {
      spawnSync("umount", [workspace]);
    }
  });

  test("of a container that is over too soon are never claimed without ground", async () => {
    const { caps } = await rig.run(rig.spec(["true"]));
    for (const { cap, actual, state, note } of caps) {
      if (state === "enforced" && actual === null) expect(note, cap).toContain("earlier container");
      if (state === "not-enforced") expect(note, cap).toContain("ended before");
    }
  });
});

describe("strict", () => {
  test("starts where every cap is enforced", async () => {
    const created = await rig.engine.create(rig.spec(["sleep", "60"]));
    if (!created.ok) throw new Error("not created");
    const started = await created.value.start(() => undefined, { strict: true });
    expect(started.ok).toBe(true);
    await created.value.remove();
    if (started.ok) expect((await started.value.ended).exitCode).not.toBe(0);
  });

  test("refuses where one is not, and leaves no container", async () => {
    const failure = await rig.refusal(
      rig.spec(["sleep", "60"], { workingDir: "/tmp", caps: { diskBytes: 64 * MIB } }),
    );
    expect(failure).toMatchObject({ reason: "caps-not-enforced", fault: "host" });
    if (failure.reason !== "caps-not-enforced") throw new Error("wrong failure");
    expect(find(failure.caps, "disk")).toMatchObject({ state: "not-enforced", requested: 64 * MIB });
    expect(find(failure.caps, "memory")?.state).toBe("enforced");
  });
});
