/**
 * The disk cap where no kernel limit keeps it: what an attempt has written is measured while it runs, and it is stopped when that is
 * more than its cap.
 *
 * Theory of operation. One measurement at a time; the next begins MIN_PAUSE_MS after the last or PAUSE_SHARE times as long as that took,
 * whichever is later, so that watching costs a few per cent of one core at most, whatever the attempt piles up. A last measurement
 * follows the end, since a short attempt may never have been looked at.
 * LIMITATION: between two looks an attempt can write what the disk takes, and files that are open but have no name are not seen.
 */
import { spawn } from "node:child_process";
import type { Engine, SandboxExit } from "../sandbox/sandbox.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { INSIDE } from "./sandbox-spec.ts";

const MIN_PAUSE_MS = 1_000;
const PAUSE_SHARE = 20;
/** A walk that takes longer is given up: its number would be old. */
const MEASURE_LIMIT_MS = 60_000;

const WATCHED = `watched: checked every ${MIN_PAUSE_MS / 1_000} s or, with many files, less often; stopped when over`;

/** Why the kernel does not keep the disk cap of a workspace. */
export function openDiskNote({ diskNote }: Workspace): string {
  return diskNote ?? "the workspace is on no file system of its own";
}

/** Bytes that the attempt has added, or null where it could not be told this time. */
export type MeasureDisk = () => Promise<number | null>;

export interface DiskWatch {
  /** Stops, measures once more, and gives the largest value seen: what was measured, or null for nothing at all. */
  finish(): Promise<number | null>;
}

export interface PreparedWatch {
  /** For people: how the cap is kept instead. */
  readonly note: string;
  /** Calls `onOver` once when there is more than the cap. Undefined where nothing can be measured. */
  start(onOver: () => void): DiskWatch | undefined;
}

/** MUST be called before the attempt starts. Null where there is no disk cap, or the kernel keeps it. */
export async function prepareDiskWatch(
  engine: Engine,
  workspace: Workspace,
  limitBytes: number | null,
): Promise<PreparedWatch | null> {
  if (limitBytes === null || workspace.diskCap === "hard") return null;
  const why = openDiskNote(workspace);
  const measure = await diskMeasureFor(engine, workspace);
  if (measure === null) {
    return { note: `not watched, its size cannot be told: ${why}`, start: () => undefined };
  }
  return { note: `${WATCHED} (${why})`, start: (onOver) => watchDisk(measure, limitBytes, onOver) };
}

/**
 * The end of a watched attempt. Over the cap is over it, also where it had ended before anybody looked; other causes than a plain end
 * go first.
 */
export async function judgeDisk(
  exit: SandboxExit,
  watch: DiskWatch | undefined,
  limitBytes: number | null,
): Promise<SandboxExit> {
  const peakBytes = await watch?.finish();
  if (peakBytes === undefined || peakBytes === null || limitBytes === null) return exit;
  const { exitCode, failure } = exit;
  const wasStopped = failure?.reason === "disk-full" && failure.by === "watch";
  const isPlain = failure === null || failure.reason === "exit";
  if (!wasStopped && !(isPlain && peakBytes > limitBytes)) return exit;
  const full = { reason: "disk-full", fault: "agent", cap: "disk", of: "bytes", by: "watch" } as const;
  return { ...exit, failure: { ...full, place: INSIDE.workspace, limitBytes, peakBytes, exitCode } };
}

/** Calls `onOver` once, with the value, when a measurement is over the limit. */
export function watchDisk(measure: MeasureDisk, limitBytes: number, onOver: () => void): DiskWatch {
  let peakBytes = -1;
  let isOver = false;
  let isFinished = false;
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> = Promise.resolve();

  async function look(): Promise<void> {
    const used = await measure().catch(() => null);
    if (used === null) return;
    peakBytes = Math.max(peakBytes, used);
    if (used <= limitBytes || isOver || isFinished) return;
    isOver = true;
    onOver();
  }

  function plan(pauseMs: number): void {
    if (isFinished || isOver) return;
    timer = setTimeout(() => {
      const beganMs = performance.now();
      looking = look().then(() => plan(Math.max(MIN_PAUSE_MS, PAUSE_SHARE * (performance.now() - beganMs))));
    }, pauseMs).unref();
  }

  plan(MIN_PAUSE_MS);
  return {
    async finish() {
      isFinished = true;
      clearTimeout(timer);
      await looking;
      if (!isOver) await look();
      return peakBytes < 0 ? null : peakBytes;
    },
  };
}

/**
 * How to measure a workspace. An overlay's upper directory holds nothing but what the attempt wrote; a copy is compared with what it
 * held at first, so it counts growth: replacing a file by one of the same size is free there. Null where the engine tells no sizes.
 */
async function diskMeasureFor(engine: Engine, workspace: Workspace): Promise<MeasureDisk | null> {
  const { volume, devicePath } = workspace;
  if (devicePath !== null) return () => usedBelow(devicePath);
  const directory = await engine.locateVolume(volume);
  const measure = directory === null ? () => engine.countVolume(volume) : () => usedBelow(directory);
  const before = await measure();
  if (before === null) return null;
  return async () => {
    const now = await measure();
    return now === null ? null : Math.max(0, now - before);
  };
}

/**
 * Disk space below a directory, by du: allocated blocks, a file with many names once, links not followed, no other file system. The
 * names and files there are hostile; of du's output only the leading number is taken.
 */
export function usedBelow(directory: string): Promise<number | null> {
  return new Promise((resolve) => {
    const child = spawn("du", ["-s", "-x", "-B1", "--", directory], {
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C" },
      stdio: ["ignore", "pipe", "ignore"],
      timeout: MEASURE_LIMIT_MS,
      killSignal: "SIGKILL",
    });
    let said = "";
    child.stdout.on("data", (bytes: Buffer) => {
      if (said.length < 100) said += bytes.toString("latin1");
    });
    child.once("error", () => resolve(null));
    // A file that vanished under du makes it end with 1; its sum is good all the same.
    child.once("close", () => {
      const bytes = /^(\d+)\t/.exec(said)?.[1];
      resolve(bytes === undefined ? null : Number(bytes));
    });
  });
}
