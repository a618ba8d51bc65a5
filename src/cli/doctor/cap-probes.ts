/** What takes as much as it can of one resource, and what its end says of the cap on it. */
import type { CapName, CapReport, Caps } from "../../model/caps.ts";
import type { RunningSandbox, SandboxExit } from "../../sandbox/sandbox.ts";

export interface MeasuredCap {
  readonly cap: CapName;
  readonly asked: number;
  /** What was reached with the cap in force; null where nothing could be measured. */
  readonly measured: number | null;
  /** What the kernel's files say of the cap. */
  readonly state: CapReport["state"];
  readonly verdict: "held" | "not held" | "not measured";
  /** How the verdict was come to, or why there is none. */
  readonly why: string;
}

export interface Probe {
  readonly cap: CapName;
  readonly caps: Partial<Caps>;
  readonly asked: number;
  /** Run by sh in /workspace. */
  readonly script: string;
  /** Needs a workspace on the state directory's disk, or one with a size of its own. */
  readonly workspace?: "disk" | "sized";
  /** Looks at the living container for as long as it likes; it is killed afterwards. */
  during?(running: RunningSandbox): Promise<number | null>;
  judge(seen: Seen): Pick<MeasuredCap, "measured" | "verdict" | "why">;
}

/** What is known of a probe after its end. */
export interface Seen {
  readonly exit: SandboxExit;
  readonly during: number | null;
  /** Milliseconds between the output's first byte and its last. */
  readonly spokeMs: number;
  readonly output: string;
}

const MIB = 1024 ** 2;
const KIB = 1024;
const CPUS = 0.25;
const CPU_WARM_UP_MS = 500;
const CPU_LOOK_MS = 3_000;
const CPU_TOLERANCE = 0.1;
const IO_TOLERANCE = 0.15;
/** Room for what a file system or a group counts that is no content. */
const SIZE_TOLERANCE = 0.1;

function rateProbe(
  cap: CapName,
  field: keyof Caps,
  rate: number,
  block: number,
  count: number,
  isRead: boolean,
): Probe {
  const write = `dd if=/dev/zero of=block bs=${block} count=${count} oflag=direct 2>/dev/null`;
  const read = `dd if=block of=/dev/null bs=${block} count=${count} iflag=direct 2>/dev/null`;
  const perOperation = cap.endsWith("Ops") ? 1 : block;
  return {
    cap,
    caps: { [field]: rate },
    asked: rate,
    workspace: "disk",
    // Memory-backed pages do not count: both ways are direct, which is what every kernel can throttle.
    script: isRead ? `${write}; echo go; ${read}; echo done` : `echo go; ${write}; echo done`,
    judge: ({ spokeMs }) => {
      const measured = (count * perOperation * 1000) / spokeMs;
      const isNear = Math.abs(measured - rate) <= rate * IO_TOLERANCE;
      if (isNear) return { measured, verdict: "held", why: "direct IO, within 15 %" };
      return measured > rate
        ? { measured, verdict: "not held", why: "direct IO was faster than the cap" }
        : { measured, verdict: "not measured", why: "the disk was slower than the cap" };
    },
  };
}

export const PROCESSOR: Probe = {
  cap: "cpus",
  caps: { cpus: CPUS },
  asked: CPUS,
  script: "while :; do :; done & while :; do :; done",
  async during(running) {
    await delay(CPU_WARM_UP_MS);
    const [before, beforeMs] = [await running.sample(), performance.now()];
    await delay(CPU_LOOK_MS);
    const [after, afterMs] = [await running.sample(), performance.now()];
    if (before.cpuMs === null || after.cpuMs === null) return null;
    return (after.cpuMs - before.cpuMs) / (afterMs - beforeMs);
  },
  judge: ({ during: measured }) => {
    if (measured === null) return { measured, verdict: "not measured", why: "no processor time to be read" };
    if (Math.abs(measured - CPUS) <= CPUS * CPU_TOLERANCE)
      return { measured, verdict: "held", why: "two busy processes, within 10 %" };
    return measured > CPUS
      ? { measured, verdict: "not held", why: "two busy processes got more than the cap" }
      : { measured, verdict: "not measured", why: "this machine is too busy to give that much" };
  },
};

export const RATES: readonly Probe[] = [
  rateProbe("ioWriteBytes", "ioWriteBytesPerSecond", 8 * MIB, MIB, 16, false),
  rateProbe("ioReadBytes", "ioReadBytesPerSecond", 8 * MIB, MIB, 16, true),
  rateProbe("ioWriteOps", "ioWriteOpsPerSecond", 100, 4 * KIB, 200, false),
  rateProbe("ioReadOps", "ioReadOpsPerSecond", 100, 4 * KIB, 200, true),
];

export const AMOUNTS: readonly Probe[] = [
  {
    cap: "memory",
    caps: { memoryBytes: 32 * MIB },
    asked: 32 * MIB,
    // A last line without an end: tail keeps all of it.
    script: "head -c 300000000 /dev/zero | tail -n 1 > /dev/null; exit 7",
    judge: ({ exit }) => {
      const measured = exit.use.peakMemoryBytes;
      if (exit.failure?.reason !== "oom") return { measured, verdict: "not held", why: "nothing was killed" };
      return judgeSize(measured, 32 * MIB, "killed at the limit, told as oom");
    },
  },
  {
    cap: "pids",
    caps: { pids: 32 },
    asked: 32,
    script: "i=0; while [ $i -lt 200 ]; do sleep 9 & i=$((i+1)); done; wait",
    judge: ({ exit }) => {
      const measured = exit.use.peakPids;
      if (exit.failure?.reason !== "pids")
        return { measured, verdict: "not held", why: "no fork was refused" };
      return judgeSize(measured, 32, `${exit.failure.denied} forks refused, told as pids`);
    },
  },
  {
    cap: "openFiles",
    caps: { openFiles: 64 },
    asked: 64,
    script:
      "exec perl -e 'for (1 .. 2000) { open($f[$_], q(<), q(/dev/null)) or last; $n = $_ + 3 } print $n'",
    judge: ({ output }) => {
      const measured = /^\d+$/.test(output) ? Number(output) : null;
      return judgeSize(measured, 64, "opened until refused");
    },
  },
  {
    cap: "tmp",
    caps: { tmpBytes: 4 * MIB },
    asked: 4 * MIB,
    script: "dd if=/dev/zero of=/tmp/fill bs=65536 count=512 2>/dev/null; stat -c %s /tmp/fill",
    judge: ({ output }) => judgeSize(Number(output) || null, 4 * MIB, "written until full"),
  },
  {
    cap: "disk",
    caps: { diskBytes: 32 * MIB },
    asked: 32 * MIB,
    workspace: "sized",
    script:
      "dd if=/dev/zero of=fill bs=65536 count=2048 conv=fsync 2>/dev/null; r=$?; stat -c %s fill; exit $r",
    judge: ({ exit, output }) => {
      const measured = Number(output) || null;
      if (exit.failure?.reason !== "disk-full")
        return { measured, verdict: "not held", why: "was not told as disk-full" };
      return judgeSize(measured, 32 * MIB, "written until full, told as disk-full");
    },
  },
];

function judgeSize(
  measured: number | null,
  asked: number,
  why: string,
): Pick<MeasuredCap, "measured" | "verdict" | "why"> {
  if (measured === null) return { measured, verdict: "not measured", why: `${why}; no figure to be read` };
  const isHeld = measured <= asked * (1 + SIZE_TOLERANCE);
  return { measured, verdict: isHeld ? "held" : "not held", why: isHeld ? why : `${why}, above the cap` };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
