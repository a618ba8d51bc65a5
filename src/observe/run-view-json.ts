import type { Explanation } from "./explain-failure.ts";
import { explainFailure } from "./explain-failure.ts";
import { computeSavings } from "./run-savings.ts";
import type { RunView, TaskView } from "./run-view.ts";

/**
 * The shape of `--json`: names in snake_case, times in milliseconds since the epoch, sizes in bytes, `null` for what is not known.
 * Fields are added, never renamed; `version` goes up if one ever has to change its meaning.
 */
export interface RunViewJson {
  readonly version: 1;
  readonly run_id: string | null;
  /** `waiting` before the first event, else `running` until the run is finished. */
  readonly state: "waiting" | "running" | "succeeded" | "failed" | "cancelled";
  readonly repository: string | null;
  /** What attempts start from; differs from HEAD where uncommitted changes were included. */
  readonly base_commit: string | null;
  readonly head_commit: string | null;
  readonly base_ref: string | null;
  readonly slots: number | null;
  readonly started_ms: number | null;
  readonly ended_ms: number | null;
  /** Tasks by state. */
  readonly counts: Readonly<Record<string, number>>;
  readonly attempts_started: number;
  readonly saved: {
    readonly held_tasks: number;
    readonly attempts_not_started: number;
    readonly attempts_at_most: number;
    readonly median_attempt_ms: number | null;
  };
  readonly applied: ReadonlyArray<{
    readonly task_ids: readonly string[];
    readonly target: string;
    readonly at_ms: number;
    readonly undone: boolean;
  }>;
  readonly warnings: ReadonlyArray<{ readonly task_id: string | null; readonly message: string }>;
  readonly tasks: readonly TaskViewJson[];
}

export interface TaskViewJson {
  readonly id: string;
  readonly title: string;
  readonly state: TaskView["state"];
  readonly depends_on: readonly string[];
  readonly attempt: number;
  readonly started_ms: number | null;
  readonly ended_ms: number | null;
  readonly retry_due_ms: number | null;
  readonly held_because: string | null;
  readonly holds: readonly string[];
  /** The failure as logged (`reason`, `fault` and its fields) and in words. */
  readonly failure:
    | (Explanation & { readonly reason: string; readonly fault: string; readonly data: object })
    | null;
  readonly patch: {
    readonly commit: string;
    readonly parent: string;
    readonly empty: boolean;
    readonly files: number;
    readonly insertions: number;
    readonly deletions: number;
    readonly binaries: number;
    readonly ignored_files: number;
    readonly ignored_bytes: number;
    /** What looks like secrets in it, by place; `apply` refuses such a patch unless told otherwise. */
    readonly secrets: ReadonlyArray<{
      readonly path: string;
      readonly rule: string;
      readonly line: number | null;
    }>;
    /** What of it is on the risk list; `apply` wants each rule allowed. */
    readonly risks: ReadonlyArray<{
      readonly rule: string;
      readonly files: number;
      readonly paths: readonly string[];
    }>;
  } | null;
  readonly caps: ReadonlyArray<{
    readonly cap: string;
    readonly requested: number | null;
    readonly actual: number | null;
    readonly state: string;
    readonly note: string | null;
  }>;
  readonly use: {
    readonly cpu_ms: number | null;
    readonly peak_memory_bytes: number | null;
    readonly peak_pids: number | null;
    readonly io_read_bytes: number | null;
    readonly io_write_bytes: number | null;
  } | null;
  readonly agent: { readonly name: string; readonly version: string | null } | null;
  readonly status: {
    readonly state: string;
    readonly message: string | null;
    readonly percent: number | null;
  } | null;
  readonly driver: string | null;
  readonly container_id: string | null;
  readonly artifacts: ReadonlyArray<{ readonly name: string; readonly bytes: number }>;
}

/** The view as plain JSON. */
export function toJson(view: RunView): RunViewJson {
  const saved = computeSavings(view);
  return {
    version: 1,
    run_id: view.runId,
    state: view.outcome?.status ?? (view.startedMs === null ? "waiting" : "running"),
    repository: view.settings?.repository ?? null,
    base_commit: view.settings?.baseCommit ?? null,
    head_commit: view.settings?.headCommit ?? view.settings?.baseCommit ?? null,
    base_ref: view.settings?.baseRef ?? null,
    slots: view.slots,
    started_ms: view.startedMs,
    ended_ms: view.endedMs,
    counts: { ...view.counts },
    attempts_started: view.attemptsStarted,
    saved: {
      held_tasks: saved.heldTasks,
      attempts_not_started: saved.attemptsNotStarted,
      attempts_at_most: saved.attemptsAtMost,
      median_attempt_ms: saved.medianAttemptMs,
    },
    applied: view.applied.map((applied) => ({
      task_ids: applied.taskIds,
      target: applied.target,
      at_ms: applied.atMs,
      undone: applied.undone,
    })),
    warnings: view.warnings.map((warning) => ({ task_id: warning.taskId, message: warning.message })),
    tasks: [...view.tasks.values()].map(taskToJson),
  };
}

function taskToJson(task: TaskView): TaskViewJson {
  const { failure, patch, patchSummary, use } = task;
  return {
    id: task.spec.id,
    title: task.spec.title,
    state: task.state,
    depends_on: task.spec.dependsOn,
    attempt: task.attempt,
    started_ms: task.startedMs,
    ended_ms: task.endedMs,
    retry_due_ms: task.retryDueMs,
    held_because: task.heldBecause,
    holds: [...task.holds],
    failure:
      failure === null
        ? null
        : { reason: failure.reason, fault: failure.fault, ...explainFailure(failure), data: failure },
    patch:
      patch === null || patchSummary === null
        ? null
        : {
            commit: patch.commit,
            parent: patch.parent,
            empty: patch.empty,
            ...patchSummary,
            ignored_files: patch.ignored.files,
            ignored_bytes: patch.ignored.bytes,
            secrets: patch.secrets ?? [],
            risks: patch.risks ?? [],
          },
    caps: task.caps.map((cap) => ({
      cap: cap.cap,
      requested: cap.requested,
      actual: cap.actual,
      state: cap.state,
      note: cap.note ?? null,
    })),
    use:
      use === null
        ? null
        : {
            cpu_ms: use.cpuMs,
            peak_memory_bytes: use.peakMemoryBytes,
            peak_pids: use.peakPids,
            io_read_bytes: use.ioReadBytes,
            io_write_bytes: use.ioWriteBytes,
          },
    agent: task.agent,
    status: task.status,
    driver: task.driver,
    container_id: task.containerId,
    artifacts: [...task.artifacts],
  };
}
