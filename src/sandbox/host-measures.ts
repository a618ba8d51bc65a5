import type { StatsFs } from "node:fs";
import { readFile, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { DiskMeasure, HostMeasures } from "../policy/preflight.ts";

/** Measures the file systems behind the given folders and the memory, for `policy/preflight.ts` to judge. */
export async function measureHost(
  folders: ReadonlyArray<{ readonly role: string; readonly path: string }>,
): Promise<HostMeasures> {
  const [disks, memory] = await Promise.all([Promise.all(folders.map(measureDisk)), measureMemory()]);
  return { disks, ...memory };
}

/** A folder that does not exist yet is measured at the nearest one above it that does. */
async function measureDisk({ role, path }: { role: string; path: string }): Promise<DiskMeasure> {
  const found = await statfsNearest(path);
  const used = found.blocks - found.bfree;
  const reachable = used + found.bavail;
  return {
    role,
    path,
    totalBytes: found.blocks * found.bsize,
    availableBytes: found.bavail * found.bsize,
    usedPercent: reachable === 0 ? 0 : (100 * used) / reachable,
    inodesUsedPercent: found.files === 0 ? null : (100 * (found.files - found.ffree)) / found.files,
  };
}

async function statfsNearest(path: string): Promise<StatsFs> {
  try {
    return await statfs(path);
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === "ENOENT";
    if (!isMissing || dirname(path) === path) throw cause;
    return statfsNearest(dirname(path));
  }
}

async function measureMemory(): Promise<Pick<HostMeasures, "memoryTotalBytes" | "memoryAvailableBytes">> {
  let text = "";
  try {
    text = await readFile("/proc/meminfo", "utf8");
  } catch {
    // No /proc: both values are unknown, which the rules take as "do not judge".
  }
  const field = (name: string) => {
    const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text);
    return match === null ? null : Number(match[1]) * 1024;
  };
  return { memoryTotalBytes: field("MemTotal"), memoryAvailableBytes: field("MemAvailable") };
}
