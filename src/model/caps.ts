import { z } from "zod";

/** The resource limits of one attempt after defaults are filled in. `null` means: no cap asked for. Sizes in bytes. */
export interface Caps {
  /** Cores, e.g. 0.5. */
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Memory + swap together is `memoryBytes + swapBytes`; 0 means no swap. */
  readonly swapBytes: number;
  readonly pids: number;
  readonly openFiles: number;
  /** What the attempt may write to its workspace. */
  readonly diskBytes: number | null;
  /** Size of each tmpfs (/tmp, HOME); counts against memory too. */
  readonly tmpBytes: number;
  readonly ioReadBytesPerSecond: number | null;
  readonly ioWriteBytesPerSecond: number | null;
  readonly ioReadOpsPerSecond: number | null;
  readonly ioWriteOpsPerSecond: number | null;
}

export const CAP_NAMES = [
  "cpus",
  "memory",
  "swap",
  "pids",
  "openFiles",
  "disk",
  "tmp",
  "ioReadBytes",
  "ioWriteBytes",
  "ioReadOps",
  "ioWriteOps",
] as const;
export type CapName = (typeof CAP_NAMES)[number];

/** What the kernel says about one cap after the container has started (row D1). */
export interface CapReport {
  readonly cap: CapName;
  readonly requested: number | null;
  /** The value read back, in the cap's own unit; null where nothing could be read. */
  readonly actual: number | null;
  readonly state: "enforced" | "not-enforced" | "not-requested";
  /** Why it is not enforced, or a limit of the enforcement ("direct IO only"). */
  readonly note?: string;
}

/** `strict` refuses to start an attempt with a requested cap that is not enforced; `report` only says so. */
export const capsModeSchema = z.enum(["report", "strict"]);
export type CapsMode = z.infer<typeof capsModeSchema>;

/** Peaks and totals of one attempt, from the kernel's counters; null where they could not be read. */
export interface ResourceUse {
  readonly cpuMs: number | null;
  readonly peakMemoryBytes: number | null;
  readonly peakPids: number | null;
  /** How often a fork was refused by the pids cap. */
  readonly pidsDenied: number | null;
  /** How many processes the kernel killed for memory. */
  readonly oomKills: number | null;
  readonly ioReadBytes: number | null;
  readonly ioWriteBytes: number | null;
}
