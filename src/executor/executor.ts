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

/** What the attempt tells while it lives. */
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
  readonly mainMs: number | null;
}

export interface AttemptSample {
  readonly cpuMs: number | null;
  readonly memoryBytes: number | null;
  readonly pids: number | null;
}

/** A running attempt. `done` settles once, after everything it made on the host is gone again; MUST NOT reject. */
export interface AttemptHandle {
  readonly done: Promise<AttemptResult>;
  stop(because: "timeout" | "cancelled"): void;
  sample(): Promise<AttemptSample | null>;
}

export interface Executor {
  /** Prepares, starts, watches, collects and releases one attempt. */
  run(request: AttemptRequest, listener: AttemptListener): AttemptHandle;
  close(): Promise<void>;
}
