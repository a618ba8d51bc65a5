/**
 * The face of `executor/`: one attempt on one host, workspace + door + sandbox put together. Knows nothing of the DAG; nothing
 * above it may assume the same host (a worker elsewhere will be a second driver).
 */
import type { CapReport, ResourceUse } from "../model/caps.ts";
import type { AttemptOutcome, ParentPatch } from "../model/event.ts";
import type { AttemptKey } from "../model/ids.ts";
import type { RunSettings } from "../model/run.ts";
import type { TaskSpec } from "../model/task.ts";

export interface AttemptRequest {
  readonly key: AttemptKey;
  readonly task: TaskSpec;
  readonly settings: RunSettings;
  readonly parents: readonly ParentPatch[];
  /** Values to keep out of output and logs. */
  readonly secrets: readonly string[];
}

/** What the attempt tells while it lives. Calls come in this order; `output` and `warning` at any time. */
export interface AttemptListener {
  prepared(info: { driver: "overlay" | "copy"; head: string; tookMs: number }): void;
  started(info: { containerId: string; caps: readonly CapReport[]; tookMs: number }): void;
  /** Redacted, bounded output; also on disk in `output.log`. */
  output(stream: "stdout" | "stderr", text: string): void;
  warning(message: string): void;
}

export interface AttemptResult {
  readonly outcome: AttemptOutcome;
  readonly use: ResourceUse | null;
  /** Milliseconds of the main process, null where it never ran. */
  readonly mainMs: number | null;
}

export interface AttemptSample {
  readonly cpuMs: number | null;
  readonly memoryBytes: number | null;
  readonly pids: number | null;
}

export interface AttemptHandle {
  /** Settles once, when the outcome is known. MUST NOT reject. */
  readonly done: Promise<AttemptResult>;
  /** Settles after `done`, when everything the attempt made on the host is gone again. MUST NOT reject. */
  readonly released: Promise<void>;
  stop(because: "timeout" | "cancelled"): void;
  /** null while nothing runs. */
  sample(): Promise<AttemptSample | null>;
}

export interface Executor {
  /** Runs one attempt through its whole life: prepare, start, watch, collect, release. */
  run(request: AttemptRequest, listener: AttemptListener): AttemptHandle;
  /** A file as a commit of the run's object store has it; null where there is none or it is no regular file. */
  readFile(
    settings: RunSettings,
    commit: string,
    path: string,
  ): Promise<{ content: Buffer; blob: string; mode: string } | null>;
  /** Removes what attempts of this state directory left behind, except those of `activeRuns`. */
  sweep(request: SweepRequest): Promise<readonly SweptItem[]>;
  close(): Promise<void>;
}

export interface SweepRequest {
  /** Asked anew before each removal: a run that begins during the sweep is active, too. */
  readonly activeRuns: Pick<ReadonlyMap<string, unknown>, "has" | "size">;
  readonly dryRun: boolean;
  /** Base trees not used for this long are removed too; null keeps them all. */
  readonly olderThanMs: number | null;
}

/** One thing that was removed, or would be. */
export interface SweptItem {
  readonly kind: "container" | "volume" | "mount" | "workspace" | "door" | "base-tree";
  readonly name: string;
  readonly why: string;
  /** Set where removing it failed. */
  readonly error?: string;
}
