/**
 * The spine: everything that happens is one of these, appended to the log before its effects are performed.
 * Two families. *Facts* are told to the scheduler (`src/tasks/decide.ts`); *decisions* are what it answers, logged the same way.
 * Names are past tense, kebab-case. Fields are plain JSON. Adding a field is fine; changing a meaning needs a new type.
 */
import type { CapReport, ResourceUse } from "./caps.ts";
import type { Failure } from "./failure.ts";
import type { RunId, TaskId } from "./ids.ts";
import type { Patch } from "./patch.ts";
import type { RunSettings } from "./run.ts";
import type { TaskSpec } from "./task.ts";

/** How one attempt ended. */
export type AttemptOutcome =
  | { readonly status: "submitted"; readonly patch: Patch }
  | { readonly status: "failed"; readonly failure: Failure };

/** Facts: told by the executor, the bus, a person or the clock. */
export type Fact =
  | { readonly type: "run-submitted"; readonly settings: RunSettings; readonly tasks: readonly TaskSpec[] }
  | { readonly type: "task-added"; readonly task: TaskSpec; readonly by: TaskId | null }
  | {
      readonly type: "attempt-ended";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly outcome: AttemptOutcome;
      readonly use: ResourceUse | null;
      readonly mainMs: number | null;
    }
  | { readonly type: "cancel-requested"; readonly taskId: TaskId | null; readonly by: string }
  /** The container runs: the task's time limit counts from here. */
  | {
      readonly type: "sandbox-started";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly containerId: string;
      readonly caps: readonly CapReport[];
      readonly tookMs: number;
    }
  | { readonly type: "slots-changed"; readonly slots: number }
  /** A timer that `nextWakeMs` asked for has come: retries fall due, time limits pass. */
  | { readonly type: "clock-ticked" };

/** Decisions of the scheduler. The supervisor performs those that have an effect. */
export type Decision =
  | {
      readonly type: "attempt-started";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly parents: readonly ParentPatch[];
    }
  | {
      readonly type: "attempt-stop-ordered";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly because: "timeout" | "cancelled";
    }
  /** `attempt` is the one that failed; the next starts when `dueMs` has passed and a slot is free. */
  | {
      readonly type: "retry-scheduled";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly delayMs: number;
      readonly dueMs: number;
      readonly failure: Failure;
    }
  | {
      readonly type: "task-succeeded";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly patch: Patch;
    }
  | {
      readonly type: "task-failed";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly failure: Failure;
    }
  | { readonly type: "task-cancelled"; readonly taskId: TaskId }
  /** `because`: the failed or cancelled task upstream that holds it. */
  | { readonly type: "task-held"; readonly taskId: TaskId; readonly because: TaskId }
  | { readonly type: "run-finished"; readonly outcome: RunOutcome };

/** A dependency's submitted patch that an attempt starts on top of. */
export interface ParentPatch {
  readonly taskId: TaskId;
  readonly commit: string;
}

export interface RunOutcome {
  readonly status: "succeeded" | "failed" | "cancelled";
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly held: number;
}

/** What happened along the way: shown, audited and measured, never decided on. */
export type Progress =
  | {
      readonly type: "snapshot-prepared";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly driver: "overlay" | "copy";
      readonly head: string;
      readonly tookMs: number;
    }
  | {
      readonly type: "agent-registered";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly name: string;
      readonly version: string | null;
    }
  | {
      readonly type: "status-reported";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly state: string;
      readonly message: string | null;
      readonly percent: number | null;
    }
  | {
      readonly type: "log-reported";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly level: "debug" | "info" | "warn" | "error";
      readonly message: string;
    }
  | {
      readonly type: "agent-error-reported";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly message: string;
      readonly fatal: boolean;
    }
  | {
      readonly type: "artifact-stored";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly name: string;
      readonly bytes: number;
      readonly sha256: string;
      /** Rules whose secrets were taken out before it was stored; size and hash are of what is stored. */
      readonly redacted?: readonly string[];
    }
  | {
      readonly type: "bus-called";
      readonly taskId: TaskId;
      readonly attempt: number;
      readonly method: string;
      readonly requestId: string | number | null;
      readonly tookMs: number;
      readonly errorCode: number | null;
    }
  | { readonly type: "supervisor-started"; readonly pid: number; readonly version: string }
  | { readonly type: "warning-raised"; readonly taskId: TaskId | null; readonly message: string };

/** What people did with results. */
export type ReviewEvent =
  | {
      readonly type: "patches-applied";
      readonly taskIds: readonly TaskId[];
      readonly target: string;
      readonly headBefore: string | null;
      readonly tree: string;
      readonly undo: string;
    }
  | { readonly type: "apply-undone"; readonly target: string };

export type RunEvent = Fact | Decision | Progress | ReviewEvent;
export type RunEventType = RunEvent["type"];

/** A logged event. `seq` counts from 1 over the whole log; `hash` covers the row before it. */
export interface LoggedEvent {
  readonly seq: number;
  readonly runId: RunId;
  readonly atMs: number;
  readonly event: RunEvent;
}
