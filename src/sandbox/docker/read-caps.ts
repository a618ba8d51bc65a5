/** The caps of a running container, from the kernel's own files. Nothing here trusts what the engine says it did. */
import { statfs } from "node:fs/promises";
import type { CapReading, CapReadings } from "../../policy/caps.ts";
import type { SandboxSpec } from "../sandbox.ts";
import type { BlockDevice } from "./block-device.ts";
import { type CgroupDir, type CgroupDirs, keyedIn, numberIn, readKernelFile } from "./cgroup-files.ts";
import { tmpfsTargets } from "./create-body.ts";

const DIRECT_IO_ONLY =
  "reads and direct writes only: cgroup v1 does not throttle the write-back of buffered writes";

/** What the control groups say. `above` is our group over the container's, where a cap may be kept too. */
export function readGroupCaps(
  dirs: CgroupDirs,
  above: CgroupDirs | null,
  device: BlockDevice | null,
): Omit<CapReadings, ProcessCap> {
  const memory = dirs("memory");
  const throttle = readThrottle(dirs("blkio") ?? dirs("io"), device);
  return {
    cpus: { actual: readCpus(dirs("cpu")) },
    memory: { actual: numberIn(memory, memory?.version === 1 ? "memory.limit_in_bytes" : "memory.max") },
    swap: readSwap(memory),
    pids: {
      actual: tighter(numberIn(dirs("pids"), "pids.max"), numberIn(above?.("pids") ?? null, "pids.max")),
    },
    ioReadBytes: throttle("read_bps", "rbps"),
    ioWriteBytes: throttle("write_bps", "wbps"),
    ioReadOps: throttle("read_iops", "riops"),
    ioWriteOps: throttle("write_iops", "wiops"),
  };
}

type ProcessCap = "openFiles" | "disk" | "tmp";

/** What the first process of the container shows: its limits and its mounts. */
export async function readProcessCaps(
  pid: number | null,
  spec: SandboxSpec,
): Promise<Pick<CapReadings, ProcessCap>> {
  const at = (file: string) => (pid === null ? "" : (readKernelFile(`/proc/${pid}/${file}`) ?? ""));
  return {
    openFiles: { actual: readOpenFiles(at("limits")) },
    tmp: { actual: readTmp(at("mounts"), tmpfsTargets(spec)) },
    disk: await readDisk(pid, spec),
  };
}

function tighter(a: number | null, b: number | null): number | null {
  return a === null || b === null ? a : Math.min(a, b);
}

function readCpus(cpu: CgroupDir | null): number | null {
  if (cpu === null) return null;
  if (cpu.version === 1) {
    const quota = numberIn(cpu, "cpu.cfs_quota_us");
    const period = numberIn(cpu, "cpu.cfs_period_us");
    if (quota === null || period === null) return null;
    return quota < 0 ? Number.POSITIVE_INFINITY : quota / period;
  }
  const [quota, period] = (readKernelFile(`${cpu.dir}/cpu.max`) ?? "").trim().split(" ");
  if (quota === undefined || period === undefined) return null;
  return quota === "max" ? Number.POSITIVE_INFINITY : Number(quota) / Number(period);
}

function readSwap(memory: CgroupDir | null): CapReading {
  const actual = readSwapLimit(memory);
  if (actual !== null) return { actual };
  if (memory === null) return { actual };
  const swaps = readKernelFile("/proc/swaps");
  if (swaps !== null && swaps.trim().split("\n").length <= 1)
    return { actual: 0, note: "the host has no swap" };
  return { actual, note: "this kernel does not account for swap (boot option swapaccount=1)" };
}

function readSwapLimit(memory: CgroupDir | null): number | null {
  if (memory?.version !== 1) return numberIn(memory, "memory.swap.max");
  const both = numberIn(memory, "memory.memsw.limit_in_bytes");
  const alone = numberIn(memory, "memory.limit_in_bytes");
  return both === null || alone === null ? null : both - alone;
}

export function readOpenFiles(limits: string): number | null {
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(limits)?.[1];
  if (hard === undefined) return null;
  return hard === "unlimited" ? Number.POSITIVE_INFINITY : Number(hard);
}

/** The largest of the scratch file systems; unlimited where one of them shows no size. */
export function readTmp(mounts: string, targets: readonly string[]): number | null {
  if (mounts === "") return null;
  const sizes = targets.map((target) => {
    const options = mounts
      .split("\n")
      .map((line) => line.split(" "))
      .findLast(([, at, type]) => at === target && type === "tmpfs")?.[3];
    const kib = options === undefined ? undefined : /(?:^|,)size=(\d+)k/.exec(options)?.[1];
    return kib === undefined ? Number.POSITIVE_INFINITY : Number(kib) * 1_024;
  });
  return Math.max(0, ...sizes);
}

/** The size of the file system the workspace is on, seen from inside. */
async function readDisk(pid: number | null, spec: SandboxSpec): Promise<CapReading> {
  if (spec.caps.diskBytes === null) return { actual: null };
  if (spec.diskEnforced === null)
    return { actual: null, note: spec.diskNote ?? "the workspace is on no file system of its own" };
  if (pid === null) return { actual: null };
  try {
    // The mount's own target, not a directory below it: what lies below may be a link planted by the container.
    const target = spec.mounts
      .map((mount) => mount.target)
      .find((one) => spec.workingDir === one || spec.workingDir.startsWith(`${one}/`));
    if (target === undefined) return { actual: null, note: "the working directory is on no mount" };
    const { blocks, bsize } = await statfs(`/proc/${pid}/root${target}`);
    return { actual: blocks * bsize };
  } catch {
    // Ended meanwhile, or /proc/<pid>/root is refused to this user.
    return { actual: null, note: "the file system of the workspace is not readable from here" };
  }
}

function readThrottle(
  io: CgroupDir | null,
  device: BlockDevice | null,
): (v1Name: string, v2Name: string) => CapReading {
  return (v1Name, v2Name) => {
    if (device === null) return { actual: null, note: "the workspace is on no block device" };
    if (io === null) return { actual: null };
    if (io.version === 1) {
      const actual = keyedIn(io, `blkio.throttle.${v1Name}_device`, device.number);
      return {
        actual: actual ?? Number.POSITIVE_INFINITY,
        ...(actual === null ? {} : { note: DIRECT_IO_ONLY }),
      };
    }
    const text = readKernelFile(`${io.dir}/io.max`);
    if (text === null) return { actual: null };
    const line = text.split("\n").find((one) => one.startsWith(`${device.number} `));
    const value = line === undefined ? undefined : new RegExp(`\\b${v2Name}=(\\d+)`).exec(line)?.[1];
    return { actual: value === undefined ? Number.POSITIVE_INFINITY : Number(value) };
  };
}
