import type { AttemptOutcome } from "../model/event.ts";
import type { TaskId } from "../model/ids.ts";
import type { RunSettings } from "../model/run.ts";
import { RunnerError } from "../model/runner-error.ts";
import type { TaskSpec } from "../model/task.ts";
import { buildDag, type Dag } from "./dag.ts";
import { createFifo, type Fifo } from "./fifo.ts";
import { createRankedQueue, type RankedQueue } from "./ranked-queue.ts";

/**
 *   waiting ──► ready ──► running ──► ended ──► succeeded | failed | cancelled
 *      │          ▲          ▲          │
 *      ▼          │          └─ (due) ──┤
 *     held        └──── retry-wait ◄────┘        waiting, ready, retry-wait ──► cancelled
 */
export type TaskStatus =
  /** A dependency has not succeeded yet. */
  | "waiting"
  | "ready"
  /** An attempt is under way; `stop` says whether its end has been ordered. */
  | "running"
  /** The attempt has ended and what follows from it is not decided yet. */
  | "ended"
  | "retry-wait"
  | "succeeded"
  | "failed"
  | "cancelled"
  | "held";

export type SettledStatus = "succeeded" | "failed" | "cancelled" | "held";

/** What is known of one task. Only `evolve` (and `decide` through it) writes to it. */
export interface TaskState {
  readonly index: number;
  readonly spec: TaskSpec;
  status: TaskStatus;
  /** Dependencies that have not succeeded. */
  unmet: number;
  /** The last attempt started, from 1; 0 before the first. */
  attempt: number;
  /** The task's one current timer: the time limit while running, the due time while waiting for a retry. */
  wakeMs: number | null;
  /** Why the end of the running attempt was ordered. */
  stop: "timeout" | "cancelled" | null;
  isCancelRequested: boolean;
  /** While `ended`: how. */
  outcome: AttemptOutcome | null;
  /** Once succeeded: the commit its dependents start on top of. */
  commit: string | null;
  /** Once held: the failed or cancelled task upstream. */
  heldBy: TaskId | null;
}

/**
 * The state of one run: the fold of its facts and decisions. The queues hold what is still to be decided; entries that have been overtaken
 * are dropped when they come up, told by the task's status.
 */
export interface RunState {
  settings: RunSettings | null;
  slots: number;
  readonly dag: Dag;
  /** By index, in plan order. */
  readonly tasks: TaskState[];
  readonly counts: Record<SettledStatus, number>;
  /** Attempts under way, those ordered to stop included: each occupies a slot until it has ended. */
  running: number;
  isCancelRequested: boolean;
  isFinished: boolean;
  readonly ready: RankedQueue;
  readonly timers: RankedQueue;
  readonly ended: Fifo<number>;
  readonly toCancel: Fifo<number>;
  readonly toHold: Fifo<{ readonly index: number; readonly because: TaskId }>;
  /** Edges followed and queue entries handled: see `countSteps`. */
  steps: number;
}

/** The state before `run-submitted`. */
export function createRunState(): RunState {
  const dag = buildDag([]);
  if (!dag.ok) throw new Error("an empty graph has problems");
  return {
    settings: null,
    slots: 0,
    dag: dag.value,
    tasks: [],
    counts: { succeeded: 0, failed: 0, cancelled: 0, held: 0 },
    running: 0,
    isCancelRequested: false,
    isFinished: false,
    ready: createRankedQueue(),
    timers: createRankedQueue(),
    ended: createFifo(),
    toCancel: createFifo(),
    toHold: createFifo(),
    steps: 0,
  };
}

/** The work done so far, in comparisons, edges followed and entries handled: grows with (tasks + edges) log tasks, and a test holds it to that. */
export function countSteps(state: RunState): number {
  return state.steps + state.ready.steps + state.timers.steps;
}

export function isSettled(task: TaskState): boolean {
  switch (task.status) {
    case "succeeded":
    case "failed":
    case "cancelled":
    case "held":
      return true;
    default:
      return false;
  }
}

/** The task of that name, or undefined where the run has none. */
export function findTask(state: RunState, id: TaskId): TaskState | undefined {
  const index = state.dag.indexes.get(id);
  return index === undefined ? undefined : state.tasks[index];
}

/** The task at an index that came out of the graph or a queue. */
export function taskAt(state: RunState, index: number): TaskState {
  const task = state.tasks[index];
  if (!task) throw new RunnerError("internal", `no task at index ${index} of ${state.tasks.length}`);
  return task;
}
