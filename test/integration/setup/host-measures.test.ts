import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { measureHost } from "../../../src/sandbox/host-measures.ts";

test("agrees with df about a file system, and measures the nearest parent of a folder that is not there", async () => {
  const { disks } = await measureHost([
    { role: "here", path: tmpdir() },
    { role: "not yet", path: `${tmpdir()}/no/such/folder` },
  ]);
  const df = spawnSync("df", ["--output=pcent", tmpdir()], { encoding: "utf8" });
  const percent = Number(/(\d+)%/.exec(df.stdout)?.[1]);
  const [here, notYet] = disks;
  // df rounds up.
  expect(Math.abs((here?.usedPercent ?? 0) - percent)).toBeLessThanOrEqual(1.1);
  expect(notYet?.totalBytes).toBe(here?.totalBytes);
  expect(notYet?.path).toBe(`${tmpdir()}/no/such/folder`);
});

test("reads the memory that is available", async () => {
  const { memoryTotalBytes, memoryAvailableBytes } = await measureHost([]);
  expect(memoryAvailableBytes).toBeGreaterThan(0);
  expect(memoryAvailableBytes).toBeLessThan(memoryTotalBytes ?? 0);
});
