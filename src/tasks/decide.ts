/**
 * Theory of operation: `decide` applies one fact and then asks the state, again and again, for the one decision that is due first, applying
 * each before the next is asked for. The order is fixed: ended attempts, cancellations, holds, time limits, starts, the end of the run.
 * Nothing is remembered between two questions but the state, so the decisions follow from the log alone.
 *
 * Cost: a task is pushed to each queue a bounded number of times per attempt and each edge is followed once in each direction per
 * outcome, so a whole run costs O((tasks + edges) log tasks); no fact makes it look at tasks it does not concern.
 *
 * LIMITATION: time is what the caller says. Where the wall clock jumps ahead (a suspended laptop), time limits pass as if the attempts had run.
 */
import type { Decision, Fact, ParentPatch, RunOutcome } from "../model/event.ts";
import { RunnerError } from "../model/runner-error.ts";
import { evolve } from "./evolve.ts";
import { isRetryGranted, retryDelayMs } from "./retry.ts";
import { isSettled, type RunState, type TaskState, taskAt } from "./run-state.ts";

/**
 * Tells the scheduler one fact; returns what it decided, in order, already applied to `state`. MUST be logged, fact first, before any of it
 * is performed. Facts that came before (an attempt that ended twice) decide nothing; facts that cannot be throw RunnerError `internal`
 * and leave `state` as it was.
 */
export function decide(state: RunState, fact: Fact, nowMs: number): Decision[] {
  evolve(state, fact, nowMs);
  const decisions: Decision[] = [];
  for (let next = nextDecision(state, nowMs); next; next = nextDecision(state, nowMs)) {
    evolve(state, next, nowMs);
    decisions.push(next);
  }
  return decisions;
}

/** When `clock-ticked` must be told next: the earliest retry due or time limit. Null: nothing waits for the clock. */
export function nextWakeMs(state: RunState): number | null {
  return currentTimer(state)?.wakeMs ?? null;
}

function nextDecision(state: RunState, nowMs: number): Decision | null {
  if (!state.settings) return null;
  return (
    concludeAttempt(state, nowMs) ??
    cancelNext(state) ??
    holdNext(state) ??
    passTime(state, nowMs) ??
    startNext(state) ??
    finish(state)
  );
}

/** What follows from an attempt that has ended. */
function concludeAttempt(state: RunState, nowMs: number): Decision | null {
  for (let index = state.ended.peek(); index !== undefined; index = state.ended.peek()) {
    const task = taskAt(state, index);
    if (task.status === "ended") return conclude(state, task, nowMs);
    state.ended.drop();
    state.steps += 1;
  }
  return null;
}

function conclude(state: RunState, task: TaskState, nowMs: number): Decision {
  const { spec, attempt, outcome } = task;
  const taskId = spec.id;
  if (!outcome || !state.settings)
    throw new RunnerError("internal", `task ${taskId} ended without an outcome`);
  // A cancel that was accepted holds even if the attempt beat it to the line: nothing may start on top of the task any more.
  if (task.isCancelRequested) return { type: "task-cancelled", taskId };
  // An attempt that submitted while its stop for the time limit was on the way has done its work.
  if (outcome.status === "submitted")
    return { type: "task-succeeded", taskId, attempt, patch: outcome.patch };
  const { failure } = outcome;
  if (isRetryGranted(spec.retries, failure, attempt)) {
    const delayMs = retryDelayMs(spec.retries, state.settings.seed, taskId, attempt);
    return { type: "retry-scheduled", taskId, attempt, delayMs, dueMs: nowMs + delayMs, failure };
  }
  if (failure.reason === "cancelled") return { type: "task-cancelled", taskId };
  return { type: "task-failed", taskId, attempt, failure };
}

function cancelNext(state: RunState): Decision | null {
  for (let index = state.toCancel.peek(); index !== undefined; index = state.toCancel.peek()) {
    const { status, stop, attempt, spec } = taskAt(state, index);
    if (status === "waiting" || status === "ready" || status === "retry-wait") {
      return { type: "task-cancelled", taskId: spec.id };
    }
    if (status === "running" && stop === null) {
      return { type: "attempt-stop-ordered", taskId: spec.id, attempt, because: "cancelled" };
    }
    state.toCancel.drop();
    state.steps += 1;
  }
  return null;
}

function holdNext(state: RunState): Decision | null {
  for (let next = state.toHold.peek(); next; next = state.toHold.peek()) {
    const task = taskAt(state, next.index);
    if (!isSettled(task)) return { type: "task-held", taskId: task.spec.id, because: next.because };
    state.toHold.drop();
    state.steps += 1;
  }
  return null;
}

/** Makes retries that have fallen due ready, which is no decision of its own, and orders attempts to stop whose time is up. */
function passTime(state: RunState, nowMs: number): Decision | null {
  for (let task = currentTimer(state); task; task = currentTimer(state)) {
    if (task.wakeMs === null || task.wakeMs > nowMs) return null;
    if (task.status === "running") {
      return {
        type: "attempt-stop-ordered",
        taskId: task.spec.id,
        attempt: task.attempt,
        because: "timeout",
      };
    }
    task.status = "ready";
    task.wakeMs = null;
    state.ready.push({ rank: task.spec.priority, index: task.index });
  }
  return null;
}

/** The task whose timer comes first; drops timers that no longer mean anything. */
function currentTimer(state: RunState): TaskState | null {
  for (let entry = state.timers.peek(); entry; entry = state.timers.peek()) {
    const task = taskAt(state, entry.index);
    if (task.wakeMs === entry.rank) return task;
    state.timers.pop();
  }
  return null;
}

function startNext(state: RunState): Decision | null {
  if (state.running >= state.slots) return null;
  for (let entry = state.ready.peek(); entry; entry = state.ready.peek()) {
    const task = taskAt(state, entry.index);
    if (task.status === "ready") {
      return {
        type: "attempt-started",
        taskId: task.spec.id,
        attempt: task.attempt + 1,
        parents: parentsOf(state, task),
      };
    }
    state.ready.pop();
  }
  return null;
}

function parentsOf(state: RunState, task: TaskState): ParentPatch[] {
  const dependencies = state.dag.dependencies[task.index] ?? [];
  state.steps += dependencies.length;
  return dependencies.map((index) => {
    const { spec, commit } = taskAt(state, index);
    if (commit === null) throw new RunnerError("internal", `task ${spec.id} has no patch to start from`);
    return { taskId: spec.id, commit };
  });
}

function finish(state: RunState): Decision | null {
  const { succeeded, failed, cancelled, held } = state.counts;
  if (state.isFinished || succeeded + failed + cancelled + held < state.tasks.length) return null;
  return {
    type: "run-finished",
    outcome: { status: outcomeStatus(state), succeeded, failed, cancelled, held },
  };
}

/** A run that a person cancelled is `cancelled` whatever failed before; else one failure makes it `failed`. */
function outcomeStatus(state: RunState): RunOutcome["status"] {
  const { failed, cancelled } = state.counts;
  if (cancelled > 0 && (state.isCancelRequested || failed === 0)) return "cancelled";
  return failed > 0 ? "failed" : "succeeded";
}
