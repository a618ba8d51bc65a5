import { CAP_NAMES, type CapName, type CapReport, type Caps } from "../model/caps.ts";

/** What the kernel's files said about one cap: the value, or why there is none. */
export interface CapReading {
  readonly actual: number | null;
  /** A limit of the enforcement, or why `actual` is null. */
  readonly note?: string;
}

export type CapReadings = Readonly<Record<CapName, CapReading>>;

/** What was asked for, by cap name; null where nothing was. */
export function requestedCaps(caps: Caps): Readonly<Record<CapName, number | null>> {
  return {
    cpus: caps.cpus,
    memory: caps.memoryBytes,
    swap: caps.swapBytes,
    pids: caps.pids,
    openFiles: caps.openFiles,
    disk: caps.diskBytes,
    tmp: caps.tmpBytes,
    ioReadBytes: caps.ioReadBytesPerSecond,
    ioWriteBytes: caps.ioWriteBytesPerSecond,
    ioReadOps: caps.ioReadOpsPerSecond,
    ioWriteOps: caps.ioWriteOpsPerSecond,
  };
}

/** The kernel may round a limit (to pages, to scheduler periods), by less than this. */
const ROUNDING = 1.01;
/** A file system of the asked size shows less or a little more than it, by its own bookkeeping. */
const DISK_ROUNDING = 1.1;
/** Of a small one the fixed part of that (groups, an unused journal) is more than a tenth. */
const DISK_BOOKKEEPING_BYTES = 3 * 1024 ** 2;

/** Compares asked with read back. A tighter limit than asked counts as enforced, an unreadable one does not. */
export function judgeCaps(caps: Caps, readings: CapReadings): readonly CapReport[] {
  const requested = requestedCaps(caps);
  return CAP_NAMES.map((cap) => judgeCap(cap, requested[cap], readings[cap]));
}

function judgeCap(cap: CapName, requested: number | null, reading: CapReading): CapReport {
  const note = reading.note === undefined ? {} : { note: reading.note };
  if (requested === null) return { cap, requested, actual: reading.actual, state: "not-requested" };
  const { actual } = reading;
  if (actual === null)
    return { cap, requested, actual, state: "not-enforced", note: "not readable", ...note };
  const limit =
    cap === "disk"
      ? Math.max(requested * DISK_ROUNDING, requested + DISK_BOOKKEEPING_BYTES)
      : requested * ROUNDING;
  if (actual <= limit) return { cap, requested, actual, state: "enforced", ...note };
  return { cap, requested, actual, state: "not-enforced", note: `the kernel has a looser limit`, ...note };
}

/** The caps for which `strict` refuses a start. */
export function unenforcedCaps(reports: readonly CapReport[]): readonly CapReport[] {
  return reports.filter((report) => report.state === "not-enforced");
}
