import { readFile, realpath, stat } from "node:fs/promises";

export interface BlockDevice {
  /** `/dev/...`, as the engine wants it. */
  readonly path: string;
  /** `major:minor`, as the kernel's throttle files name it. */
  readonly number: string;
}

/**
 * The whole disk under a directory, for the IO caps (throttles of a partition are refused or ignored by the kernel).
 * Null where there is none: tmpfs, network and FUSE file systems.
 */
export async function findBlockDevice(directory: string): Promise<BlockDevice | null> {
  const path = await realpath(directory);
  const own = deviceNumber((await stat(path)).dev);
  const number = own.startsWith("0:") ? await numberFromMounts(path) : own;
  if (number === null) return null;
  try {
    const entry = await realpath(`/sys/dev/block/${number}`);
    const isPartition = await exists(`${entry}/partition`);
    const disk = isPartition ? entry.slice(0, entry.lastIndexOf("/")) : entry;
    const name = /^DEVNAME=(.+)$/m.exec(await readFile(`${disk}/uevent`, "utf8"))?.[1];
    if (name === undefined) return null;
    return { path: `/dev/${name}`, number: (await readFile(`${disk}/dev`, "utf8")).trim() };
  } catch {
    // No such entry under /sys: not a block device after all.
    return null;
  }
}

/** File systems with an anonymous device number (btrfs, overlay) name their disk in the mount table. */
async function numberFromMounts(path: string): Promise<string | null> {
  let best: { target: string; source: string } | null = null;
  for (const line of (await readFile("/proc/self/mountinfo", "utf8")).split("\n")) {
    const [before, after] = line.split(" - ", 2);
    const target = before?.split(" ")[4];
    const source = after?.split(" ")[1];
    if (target === undefined || source === undefined) continue;
    const isAbove = target === "/" || path === target || path.startsWith(`${target}/`);
    // ">=": of two mounts on one place the later one is seen.
    if (isAbove && (best === null || target.length >= best.target.length)) best = { target, source };
  }
  if (best === null || !best.source.startsWith("/dev/")) return null;
  try {
    return deviceNumber((await stat(best.source)).rdev);
  } catch {
    return null;
  }
}

/** Splits a Linux device number (12 bits major, 20 bits minor, in glibc's layout). */
function deviceNumber(dev: number): string {
  const wide = BigInt(dev);
  const major = ((wide >> 8n) & 0xfffn) | ((wide >> 32n) & 0xfffff000n);
  const minor = (wide & 0xffn) | ((wide >> 12n) & 0xffffff00n);
  return `${major}:${minor}`;
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
