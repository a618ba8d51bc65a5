/**
 * Whether this machine is fit to take a run (row A6). Pure: the numbers are measured elsewhere (`sandbox/host-measures.ts`).
 */
import { formatBytes } from "../util/bytes.ts";

export interface DiskMeasure {
  /** What is stored there, for the message: "state directory". */
  readonly role: string;
  readonly path: string;
  readonly totalBytes: number;
  readonly availableBytes: number;
  /** 0 to 100, as `df` counts: used of what an unprivileged user can have. */
  readonly usedPercent: number;
  /** null on file systems that make inodes as needed (btrfs). */
  readonly inodesUsedPercent: number | null;
}

export interface HostMeasures {
  readonly disks: readonly DiskMeasure[];
  readonly memoryTotalBytes: number | null;
  /** What new programs can have without swapping; null where the kernel does not say. */
  readonly memoryAvailableBytes: number | null;
}

export interface PreflightMeasures extends HostMeasures {
  /** null: not looked at. */
  readonly engine: { readonly endpoint: string | null; readonly tried: readonly string[] } | null;
  readonly images: ReadonlyArray<{ readonly name: string; readonly isPresent: boolean }>;
  /** OCI runtimes that tasks ask for, and those the engine has; absent: none asked for. */
  readonly runtimes?: { readonly asked: readonly string[]; readonly known: readonly string[] };
  /** Why overlay workspaces, which the person insists on, cannot be had; absent or null: no objection. */
  readonly overlayRefusal?: string | null;
}

export interface PreflightLimits {
  readonly maxDiskPercent: number;
  readonly maxInodePercent: number;
  /** Attempts that may run at once, and the memory cap of the largest of them. */
  readonly slots: number;
  readonly memoryBytesPerSlot: number;
  /**
   * How many times the available memory the caps may add up to. Caps are ceilings, not use: 1 guarantees that all slots
   * can reach theirs at once, more is a bet that they do not.
   */
  readonly maxMemoryOvercommit: number;
}

export const DEFAULT_PREFLIGHT_LIMITS = {
  maxDiskPercent: 85,
  maxInodePercent: 95,
  maxMemoryOvercommit: 4,
} as const;

export interface PreflightProblem {
  readonly thing: "disk" | "inodes" | "memory" | "engine" | "image" | "runtime" | "workspace";
  /** `refuse`: the run must not start. `warn`: it may, the person should know. */
  readonly severity: "refuse" | "warn";
  /** Names the thing, the limit and the value. */
  readonly message: string;
  readonly hint: string;
  readonly limit: number | null;
  readonly value: number | null;
}

/** All problems, the refusals first; empty means fit. */
export function checkPreflight(
  measures: PreflightMeasures,
  limits: PreflightLimits,
): readonly PreflightProblem[] {
  const problems = [
    ...checkEngine(measures),
    ...checkImages(measures),
    ...checkRuntimes(measures),
    ...checkOverlay(measures),
    ...measures.disks.flatMap((disk) => checkDisk(disk, limits)),
    ...checkMemory(measures, limits),
  ];
  return [
    ...problems.filter(({ severity }) => severity === "refuse"),
    ...problems.filter(({ severity }) => severity === "warn"),
  ];
}

function checkEngine({ engine }: PreflightMeasures): readonly PreflightProblem[] {
  if (engine === null || engine.endpoint !== null) return [];
  const tried = engine.tried.length === 0 ? "no place to look" : engine.tried.join("; ");
  return [
    {
      thing: "engine",
      severity: "refuse",
      message: `no container engine answers: ${tried}`,
      hint: "run `bulkhead setup` to start one, or name one with --engine",
      limit: null,
      value: null,
    },
  ];
}

function checkImages({ images }: PreflightMeasures): readonly PreflightProblem[] {
  return images
    .filter(({ isPresent }) => !isPresent)
    .map(({ name }) => ({
      thing: "image",
      severity: "refuse",
      message: `the engine does not have the image ${name}`,
      hint: `run \`bulkhead setup\` for bulkhead's own image, or \`docker pull ${name}\``,
      limit: null,
      value: null,
    }));
}

/** A name with a dot may be a containerd shim, which engines take without listing it: only they can tell. */
function checkRuntimes({ runtimes }: PreflightMeasures): readonly PreflightProblem[] {
  if (runtimes === undefined) return [];
  const { asked, known } = runtimes;
  return asked
    .filter((name) => !known.includes(name))
    .map((name) => ({
      thing: "runtime",
      severity: name.includes(".") || known.length === 0 ? "warn" : "refuse",
      message: `the engine does not list the OCI runtime ${name}; it has ${known.join(", ") || "none listed"}`,
      hint: "name one of these with --runtime or `runtime:`, or add it to the engine (`dockerd --add-runtime`)",
      limit: null,
      value: null,
    }));
}

function checkOverlay({ overlayRefusal }: PreflightMeasures): readonly PreflightProblem[] {
  if (overlayRefusal === undefined || overlayRefusal === null) return [];
  return [
    {
      thing: "workspace",
      severity: "refuse",
      message: `overlay workspaces cannot be had here: ${overlayRefusal}`,
      hint: "use --workspace copy, or auto",
      limit: null,
      value: null,
    },
  ];
}

function checkDisk(disk: DiskMeasure, limits: PreflightLimits): readonly PreflightProblem[] {
  const problems: PreflightProblem[] = [];
  const refuse = (thing: "disk" | "inodes", message: string, limit: number, value: number) => {
    const hint = `free space there (\`bulkhead gc\` removes finished workspaces), or raise the limit`;
    problems.push({ thing, severity: "refuse", message, hint, limit, value });
  };
  if (disk.usedPercent > limits.maxDiskPercent) {
    const free = `${formatBytes(disk.availableBytes)} of ${formatBytes(disk.totalBytes)} free`;
    refuse(
      "disk",
      `the file system of the ${disk.role} ${disk.path} is ${round(disk.usedPercent)} % full, over the limit of ${limits.maxDiskPercent} % (${free})`,
      limits.maxDiskPercent,
      disk.usedPercent,
    );
  }
  if (disk.inodesUsedPercent !== null && disk.inodesUsedPercent > limits.maxInodePercent) {
    refuse(
      "inodes",
      `the file system of the ${disk.role} ${disk.path} has used ${round(disk.inodesUsedPercent)} % of its inodes, over the limit of ${limits.maxInodePercent} %`,
      limits.maxInodePercent,
      disk.inodesUsedPercent,
    );
  }
  return problems;
}

function checkMemory(measures: HostMeasures, limits: PreflightLimits): readonly PreflightProblem[] {
  const available = measures.memoryAvailableBytes;
  if (available === null) return [];
  const wanted = limits.slots * limits.memoryBytesPerSlot;
  if (wanted <= available) return [];
  const isTooMuch = wanted > available * limits.maxMemoryOvercommit || limits.memoryBytesPerSlot > available;
  const sum = `${limits.slots} parallel attempts with up to ${formatBytes(limits.memoryBytesPerSlot)} each may need ${formatBytes(wanted)}`;
  const fitting = Math.floor((available * limits.maxMemoryOvercommit) / limits.memoryBytesPerSlot);
  const lower =
    fitting >= 1 && limits.memoryBytesPerSlot <= available ? `run at most ${fitting} at once, ` : "";
  return [
    {
      thing: "memory",
      severity: isTooMuch ? "refuse" : "warn",
      message: isTooMuch
        ? `${sum}, over the limit of ${limits.maxMemoryOvercommit} × the ${formatBytes(available)} available, or one alone does not fit`
        : `${sum}, more than the ${formatBytes(available)} available: fine unless all reach their cap at once`,
      hint: `${lower}lower the tasks' memory caps, or end other programs`,
      limit: available * limits.maxMemoryOvercommit,
      value: wanted,
    },
  ];
}

function round(percent: number): string {
  return percent.toFixed(1);
}
