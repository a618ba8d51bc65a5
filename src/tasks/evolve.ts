/**
 * Theory of operation: the state is the fold of the log. Each event is applied by the same code whether it happens now (`decide`) or is
 * read back after a crash. An event only *records*: what has yet to be decided because of it goes into a queue of the state. So a log that
 * ends between a fact and its decisions folds to a state that still owes them, and the next `clock-ticked` pays.
 *
 * An event that cannot be (unknown task, second `run-submitted`) is a bug of the caller or a log of something else: RunnerError
 * `internal`, thrown before anything has changed.
 */
import type { Decision, Fact, RunEvent } from "../model/event.ts";
import type { TaskId } from "../model/ids.ts";
import { RunnerError } from "../model/runner-error.ts";
import type { TaskSpec } from "../model/task.ts";
import { addNodes } from "./dag.ts";
import {
  findTask,
  isSettled,
  type RunState,
  type SettledStatus,
  type TaskState,
  taskAt,
} from "./run-state.ts";

/** What an attempt may take before its container runs, on top of the task's own limit; far beyond what a healthy host needs. */
const PREPARATION_LIMIT_MS = 15 * 60_000;

/** Applies one logged event in place. Progress and review events change nothing here. Cost: the edges of the task it is about. */
export function evolve(state: RunState, event: RunEvent, atMs: number): void {
  switch (event.type) {
    case "run-submitted":
      submit(state, event);
      break;
    case "task-added":
      addTask(state, event.task);
      break;
    case "attempt-ended":
      endAttempt(state, event);
      break;
    case "cancel-requested":
      requestCancel(state, event.taskId);
      break;
    case "slots-changed":
      state.slots = checkSlots(event.slots);
      break;
    case "attempt-started":
      startAttempt(state, event, atMs);
      break;
    case "sandbox-started":
      startClock(state, event, atMs);
      break;
    case "attempt-stop-ordered": {
      const task = attemptOf(state, event);
      task.stop = event.because;
      task.wakeMs = null;
      break;
    }
    case "retry-scheduled": {
      const task = attemptOf(state, event);
      task.status = "retry-wait";
      task.outcome = null;
      setTimer(state, task, event.dueMs);
      break;
    }
    case "task-succeeded": {
      const task = settle(state, event.taskId, "succeeded");
      task.commit = event.patch.commit;
      releaseDependents(state, task);
      break;
    }
    case "task-failed":
      holdDependents(state, settle(state, event.taskId, "failed"), event.taskId);
      break;
    case "task-cancelled":
      holdDependents(state, settle(state, event.taskId, "cancelled"), event.taskId);
      break;
    case "task-held": {
      const task = settle(state, event.taskId, "held");
      task.heldBy = event.because;
      holdDependents(state, task, event.because);
      break;
    }
    case "run-finished":
      state.isFinished = true;
      break;
    default:
      break;
  }
}

function submit(state: RunState, fact: Extract<Fact, { type: "run-submitted" }>): void {
  if (state.settings) throw new RunnerError("internal", `run ${state.settings.runId} was submitted twice`);
  const slots = checkSlots(fact.settings.slots);
  link(state, fact.tasks);
  state.settings = fact.settings;
  state.slots = slots;
}

function addTask(state: RunState, spec: TaskSpec): void {
  if (!state.settings || state.isFinished) {
    throw new RunnerError("internal", `task ${spec.id} was added to a run that is not under way`);
  }
  link(state, [spec]);
  if (state.isCancelRequested) requestCancel(state, spec.id);
}

/** Takes tasks into the graph and finds where each stands: held from the start, ready, or waiting. */
function link(state: RunState, specs: readonly TaskSpec[]): void {
  const first = state.tasks.length;
  const linked = addNodes(state.dag, specs);
  if (!linked.ok) {
    throw new RunnerError("internal", "tasks that do not form a DAG reached the scheduler", {
      data: { problems: linked.error },
      hint: "Check them with buildDag or checkNodes before telling the scheduler.",
    });
  }
  for (const [place, spec] of specs.entries()) {
    state.tasks.push({
      index: first + place,
      spec,
      status: "waiting",
      unmet: 0,
      attempt: 0,
      wakeMs: null,
      stop: null,
      isCancelRequested: false,
      outcome: null,
      commit: null,
      heldBy: null,
    });
  }
  for (let index = first; index < state.tasks.length; index += 1) {
    const task = taskAt(state, index);
    let because: TaskId | null = null;
    for (const dependency of edges(state, state.dag.dependencies, index)) {
      const { status, heldBy, spec } = taskAt(state, dependency);
      if (status === "failed" || status === "cancelled") because ??= spec.id;
      else if (status === "held") because ??= heldBy;
      if (status !== "succeeded") task.unmet += 1;
    }
    if (because) state.toHold.push({ index, because });
    else if (task.unmet === 0) makeReady(state, task);
  }
}

function endAttempt(state: RunState, fact: Extract<Fact, { type: "attempt-ended" }>): void {
  const task = knownTask(state, fact.taskId);
  if (fact.attempt > task.attempt) {
    throw new RunnerError(
      "internal",
      `attempt ${fact.attempt} of task ${fact.taskId} ended without a start`,
      {
        data: { taskId: fact.taskId, attempt: fact.attempt, started: task.attempt },
      },
    );
  }
  // Told twice, or about an attempt that has been given up for a later one: the first word stands.
  if (task.status !== "running" || fact.attempt !== task.attempt) return;
  task.status = "ended";
  task.stop = null;
  task.wakeMs = null;
  task.outcome = fact.outcome;
  state.running -= 1;
  state.ended.push(task.index);
}

function requestCancel(state: RunState, taskId: TaskId | null): void {
  if (taskId === null) {
    if (state.isCancelRequested) return;
    state.isCancelRequested = true;
  }
  for (const task of taskId === null ? state.tasks : [knownTask(state, taskId)]) {
    state.steps += 1;
    if (isSettled(task) || task.isCancelRequested) continue;
    task.isCancelRequested = true;
    state.toCancel.push(task.index);
  }
}

function startAttempt(
  state: RunState,
  decision: Extract<Decision, { type: "attempt-started" }>,
  atMs: number,
): void {
  const task = knownTask(state, decision.taskId);
  task.status = "running";
  task.attempt = decision.attempt;
  task.stop = null;
  state.running += 1;
  setTimer(state, task, atMs + PREPARATION_LIMIT_MS + task.spec.timeoutMs);
}

/** The limit is for the work: what the host needed before it, waiting for other attempts' starts included, is not counted. */
function startClock(state: RunState, fact: Extract<Fact, { type: "sandbox-started" }>, atMs: number): void {
  const task = knownTask(state, fact.taskId);
  const isCurrent = task.status === "running" && task.attempt === fact.attempt && task.stop === null;
  if (isCurrent) setTimer(state, task, atMs + task.spec.timeoutMs);
}

function releaseDependents(state: RunState, task: TaskState): void {
  for (const index of edges(state, state.dag.dependents, task.index)) {
    const dependent = taskAt(state, index);
    dependent.unmet -= 1;
    if (dependent.unmet === 0 && dependent.status === "waiting") makeReady(state, dependent);
  }
}

function holdDependents(state: RunState, task: TaskState, because: TaskId): void {
  for (const index of edges(state, state.dag.dependents, task.index)) state.toHold.push({ index, because });
}

function makeReady(state: RunState, task: TaskState): void {
  task.status = "ready";
  task.wakeMs = null;
  state.ready.push({ rank: task.spec.priority, index: task.index });
}

function settle(state: RunState, id: TaskId, status: SettledStatus): TaskState {
  const task = knownTask(state, id);
  if (isSettled(task)) throw new RunnerError("internal", `task ${id} was settled twice`);
  task.status = status;
  task.wakeMs = null;
  task.outcome = null;
  state.counts[status] += 1;
  return task;
}

function setTimer(state: RunState, task: TaskState, wakeMs: number): void {
  task.wakeMs = wakeMs;
  state.timers.push({ rank: wakeMs, index: task.index });
}

function edges(state: RunState, lists: readonly (readonly number[])[], index: number): readonly number[] {
  const list = lists[index] ?? [];
  state.steps += 1 + list.length;
  return list;
}

function attemptOf(state: RunState, of: { readonly taskId: TaskId; readonly attempt: number }): TaskState {
  const task = knownTask(state, of.taskId);
  if (task.attempt === of.attempt) return task;
  throw new RunnerError("internal", `task ${of.taskId} is at attempt ${task.attempt}, not ${of.attempt}`);
}

function knownTask(state: RunState, id: TaskId): TaskState {
  const task = findTask(state, id);
  if (task) return task;
  throw new RunnerError("internal", `the run has no task ${id}`, { data: { taskId: id } });
}

function checkSlots(slots: number): number {
  if (Number.isSafeInteger(slots) && slots >= 0) return slots;
  throw new RunnerError("internal", `slots must be a whole number from 0, not ${slots}`, { data: { slots } });
}
