/**
 * Theory of operation. One run: facts come in (an attempt ended, a person cancelled, the clock), `decide` answers with decisions,
 * facts and decisions are appended to the log in one transaction, and only then the decisions that have an effect are performed.
 * Everything here runs on one thread and `feed` never awaits, so facts are taken one at a time in the order they came.
 */
import type { AttemptHandle, AttemptListener, AttemptResult, Executor } from "../executor/executor.ts";
import type { Decision, Fact, RunEvent, RunOutcome } from "../model/event.ts";
import type { Failure } from "../model/failure.ts";
import type { AttemptKey, TaskId } from "../model/ids.ts";
import type { RunSettings } from "../model/run.ts";
import type { TaskSpec } from "../model/task.ts";
import { redactValue } from "../observe/redact.ts";
import type { EventStore } from "../store/store.ts";
import { decide, nextWakeMs } from "../tasks/decide.ts";
import { createRunState } from "../tasks/run-state.ts";
import type { Clock } from "../util/clock.ts";
import { createDeferred } from "../util/deferred.ts";
import type { Logger } from "../util/logger.ts";

export interface RunSubmission {
  readonly settings: RunSettings;
  readonly tasks: readonly TaskSpec[];
  readonly secrets: readonly string[];
}

export interface RunControllerDeps {
  readonly store: EventStore;
  readonly executor: Executor;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A piece of live output, already redacted and bounded by the executor. */
export interface OutputPiece {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

export interface TaskSample {
  readonly taskId: TaskId;
  readonly cpuMs: number | null;
  readonly memoryBytes: number | null;
  readonly pids: number | null;
}

export interface RunController {
  readonly settings: RunSettings;
  readonly executor: Executor;
  /** Settles when every task has ended and everything made on the host is gone. Rejects only for bugs. */
  readonly settled: Promise<RunOutcome>;
  task(taskId: string): TaskSpec | null;
  /** Commit a task submitted last, or null. */
  submittedCommit(taskId: string): string | null;
  /** Commit an attempt started from, or null before its snapshot was made. */
  snapshotCommit(key: AttemptKey): string | null;
  /** True where `ancestor` lies upstream of `taskId`. */
  isUpstream(ancestor: string, taskId: string): boolean;
  reportFatal(key: AttemptKey, message: string): void;
  cancel(taskId: TaskId | null, by: string): void;
  samples(): Promise<readonly TaskSample[]>;
  onOutput(listener: (piece: OutputPiece) => void): () => void;
  /** Values to keep out of everything that is logged or shown. */
  readonly secrets: readonly string[];
}

/** Starts a run: logs it, decides, performs. Call once. */
export function startRun(deps: RunControllerDeps, submission: RunSubmission): RunController {
  const { settings } = submission;
  const { runId } = settings;
  const tasks = new Map<string, TaskSpec>(submission.tasks.map((task) => [task.id, task]));
  const running = new Map<string, { handle: AttemptHandle; taskId: TaskId }>();
  const submitted = new Map<string, string>();
  const snapshots = new Map<string, string>();
  const fatal = new Map<string, string>();
  const released = new Set<Promise<void>>();
  const listeners = new Set<(piece: OutputPiece) => void>();
  const settled = createDeferred<RunOutcome>();
  const state = createRunState();
  let timer: NodeJS.Timeout | undefined;

  const { secrets } = submission;
  /** What attempts did and said enters the log here and in `bus-port.ts`, and nowhere else: without secrets. */
  const note = (event: RunEvent): void => {
    deps.store.appendSoon(runId, redactValue(secrets, event));
  };

  function feed(fact: Fact): void {
    try {
      const decisions = decide(state, fact, deps.clock.nowMs());
      deps.store.append(runId, [fact, ...decisions]);
      for (const decision of decisions) perform(decision);
      armTimer();
    } catch (error) {
      deps.logger.error({ runId, fact: fact.type, error: String(error) }, "the run cannot go on");
      for (const { handle } of running.values()) handle.stop("cancelled");
      settled.reject(error);
    }
  }

  function armTimer(): void {
    clearTimeout(timer);
    const wakeMs = nextWakeMs(state);
    if (wakeMs === null) return;
    // setTimeout fires at once for delays over 2^31-1 ms.
    const delayMs = Math.min(Math.max(0, wakeMs - deps.clock.nowMs()), 2 ** 31 - 1);
    timer = setTimeout(() => feed({ type: "clock-ticked" }), delayMs);
  }

  function perform(decision: Decision): void {
    switch (decision.type) {
      case "attempt-started":
        startAttempt(decision);
        return;
      case "attempt-stop-ordered":
        running.get(slotName(decision.taskId, decision.attempt))?.handle.stop(decision.because);
        return;
      case "task-succeeded":
        submitted.set(decision.taskId, decision.patch.commit);
        return;
      case "run-finished":
        clearTimeout(timer);
        void Promise.all(released).then(() => settled.resolve(decision.outcome));
        return;
      case "retry-scheduled":
      case "task-failed":
      case "task-cancelled":
      case "task-held":
        return;
    }
  }

  function startAttempt(decision: Extract<Decision, { type: "attempt-started" }>): void {
    const { taskId, attempt } = decision;
    const task = tasks.get(taskId);
    if (!task) throw new Error(`no such task: ${taskId}`);
    const key: AttemptKey = { runId, taskId, attempt };
    const name = slotName(taskId, attempt);
    const handle = deps.executor.run(
      { key, task, settings, parents: decision.parents, secrets },
      listenerFor(key, name),
    );
    running.set(name, { handle, taskId });
    released.add(handle.released);
    void handle.released.then(() => released.delete(handle.released));
    void handle.done.then((result) => {
      running.delete(name);
      feed(
        redactValue(secrets, {
          type: "attempt-ended",
          taskId,
          attempt,
          ...withFatal(result, fatal.get(name)),
        }),
      );
    });
  }

  function listenerFor(key: AttemptKey, name: string): AttemptListener {
    const at = { taskId: key.taskId, attempt: key.attempt };
    return {
      prepared(info) {
        snapshots.set(name, info.head);
        note({ type: "snapshot-prepared", ...at, ...info });
      },
      started: (info) => feed({ type: "sandbox-started", ...at, ...info }),
      output(stream, text) {
        for (const listener of listeners) listener({ ...at, stream, text });
      },
      warning: (message) => note({ type: "warning-raised", taskId: key.taskId, message }),
    };
  }

  feed({ type: "run-submitted", settings, tasks: submission.tasks });

  return {
    settings,
    secrets,
    executor: deps.executor,
    settled: settled.promise,
    task: (taskId) => tasks.get(taskId) ?? null,
    submittedCommit: (taskId) => submitted.get(taskId) ?? null,
    snapshotCommit: (key) => snapshots.get(slotName(key.taskId, key.attempt)) ?? null,
    isUpstream: (ancestor, taskId) => isUpstream(tasks, ancestor, taskId),
    reportFatal: (key, message) => {
      fatal.set(slotName(key.taskId, key.attempt), message);
    },
    cancel: (taskId, by) => feed({ type: "cancel-requested", taskId, by }),
    async samples() {
      const taken = await Promise.all(
        [...running.values()].map(async ({ handle, taskId }) => {
          const sample = await handle.sample();
          return sample ? { taskId, ...sample } : null;
        }),
      );
      return taken.filter((sample) => sample !== null);
    },
    onOutput(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function slotName(taskId: string, attempt: number): string {
  return `${taskId}#${attempt}`;
}

/** An agent that reported a fatal error did not succeed, whatever its exit code says. */
function withFatal(result: AttemptResult, message: string | undefined): AttemptResult {
  if (message === undefined || result.outcome.status === "failed") return result;
  const failure: Failure = { reason: "agent-error", fault: "agent", message };
  return { ...result, outcome: { status: "failed", failure } };
}

/** Walks up from a task; plans are shallow next to their width, so this stays cheap. */
function isUpstream(tasks: ReadonlyMap<string, TaskSpec>, ancestor: string, taskId: string): boolean {
  const seen = new Set<string>();
  const queue = [taskId];
  for (let current = queue.pop(); current !== undefined; current = queue.pop()) {
    for (const dependency of tasks.get(current)?.dependsOn ?? []) {
      if (dependency === ancestor) return true;
      if (!seen.has(dependency)) {
        seen.add(dependency);
        queue.push(dependency);
      }
    }
  }
  return false;
}
