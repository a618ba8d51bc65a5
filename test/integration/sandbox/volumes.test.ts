import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { extract, pack } from "tar-stream";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { usedBelow } from "../../../src/executor/disk-watch.ts";
import { LABELS } from "../../../src/sandbox/sandbox.ts";
import { IMAGE, openRig, type Rig } from "./rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await openRig();
});
afterEach(async () => {
  expect(await rig.leftovers()).toEqual([]);
});
afterAll(() => rig.close());

let count = 0;
async function withVolume(work: (name: string) => Promise<void>): Promise<void> {
  count += 1;
  const name = `bulkhead-test-${rig.stateId}-v${count}`;
  await rig.engine.createVolume({ name, labels: { [LABELS.state]: rig.stateId, purpose: "test" } });
  try {
    await work(name);
  } finally {
    await rig.engine.removeVolume(name);
    await rig.engine.removeVolume(name);
  }
}

test("a volume is found by its labels", async () => {
  await withVolume(async (name) => {
    expect(await rig.engine.listVolumes({ [LABELS.state]: rig.stateId, purpose: "test" })).toMatchObject([
      { name },
    ]);
    expect(await rig.engine.listVolumes({ [LABELS.state]: rig.stateId, purpose: "other" })).toEqual([]);
  });
});

test("what lies in a volume is counted by the engine, and by us where its files are ours to read", async () => {
  await withVolume(async (volume) => {
    const tar = pack();
    tar.entry({ name: "data", mode: 0o644 }, Buffer.alloc(3_000_000, 1));
    tar.finalize();
    await rig.engine.putArchive(volume, IMAGE, Readable.from(tar));
    const counts = await Promise.all([rig.engine.countVolume(volume), rig.engine.countVolume(volume)]);
    expect(counts).toEqual([3_000_000, 3_000_000]);
    const directory = await rig.engine.locateVolume(volume);
    expect(directory === null).toBe(process.getuid?.() !== 0);
    if (directory !== null) expect(await usedBelow(directory)).toBeGreaterThanOrEqual(3_000_000);
  });
  expect(await rig.engine.countVolume("bulkhead-test-no-such")).toBeNull();
  expect(await rig.engine.locateVolume("bulkhead-test-no-such")).toBeNull();
});

test("a name that exists with other options is refused, not silently reused", async () => {
  await withVolume(async (name) => {
    const labels = { [LABELS.state]: rig.stateId, purpose: "test" };
    await rig.engine.createVolume({ name, labels });
    await expect(
      rig.engine.createVolume({
        name,
        labels,
        driverOptions: { type: "tmpfs", device: "tmpfs", o: "size=1m" },
      }),
    ).rejects.toMatchObject({ code: "workspace-failed" });
  });
});

test("a tar goes in, is seen by a sandbox, and comes out again", async () => {
  await withVolume(async (volume) => {
    const tar = pack();
    tar.entry({ name: "docs/", type: "directory", mode: 0o755, uid: 10_001, gid: 10_001 });
    tar.entry({ name: "docs/read me", mode: 0o644, uid: 10_001, gid: 10_001 }, "hello");
    tar.entry({ name: "run.sh", mode: 0o755, uid: 10_001, gid: 10_001 }, "#!/bin/sh\necho ran > docs/out");
    tar.finalize();
    await rig.engine.putArchive(volume, IMAGE, Readable.from(tar));
    const { exit } = await rig.run(
      rig.spec(["./run.sh"], {
        mounts: [{ type: "volume", volume, target: "/workspace", readOnly: false }],
        workingDir: "/workspace",
      }),
    );
    expect(exit.failure).toBeNull();
    const entries: Record<string, string> = {};
    const reader = extract();
    (await rig.engine.getArchive(volume, IMAGE)).pipe(reader);
    for await (const entry of reader) entries[entry.header.name] = await text(entry);
    expect(entries).toMatchObject({ "./docs/read me": "hello", "./docs/out": "ran\n" });
    await expect.poll(() => rig.engine.list({ [LABELS.state]: rig.stateId })).toEqual([]);
  });
});

test("an archive that is not read to its end leaves no container", async () => {
  await withVolume(async (volume) => {
    const stream = await rig.engine.getArchive(volume, IMAGE);
    if ("destroy" in stream && typeof stream.destroy === "function") stream.destroy();
    await expect.poll(() => rig.engine.list({ [LABELS.state]: rig.stateId })).toEqual([]);
  });
});

test("an unknown volume is an error, and is not made by asking for it", async () => {
  await expect(rig.engine.getArchive(`bulkhead-test-${rig.stateId}-none`, IMAGE)).rejects.toMatchObject({
    name: "RunnerError",
  });
});
