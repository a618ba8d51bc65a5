import type { TaskId } from "../model/ids.ts";
import type { RunView } from "./run-view.ts";

/** What failing early saved (row A22), in figures that can be stood by: work that was not begun, not guessed time limits. */
export interface Savings {
  readonly heldTasks: number;
  /** Attempts that could have been made for nothing: one for each held task, and its retries at most. */
  readonly attemptsNotStarted: number;
  readonly attemptsAtMost: number;
  /** Of this run's finished attempts, null before the first. */
  readonly medianAttemptMs: number | null;
  readonly causes: ReadonlyArray<{ readonly taskId: TaskId; readonly held: readonly TaskId[] }>;
}

/** Counts what was held because of what. O(tasks). */
export function computeSavings(view: RunView): Savings {
  const causes: Array<{ taskId: TaskId; held: readonly TaskId[] }> = [];
  let attemptsAtMost = 0;
  for (const task of view.tasks.values()) {
    if (task.holds.length > 0) causes.push({ taskId: task.spec.id, held: task.holds });
    if (task.state === "held") attemptsAtMost += 1 + task.spec.retries.max;
  }
  return {
    heldTasks: view.counts.held,
    attemptsNotStarted: view.counts.held,
    attemptsAtMost,
    medianAttemptMs: median(view.attemptMs),
    causes,
  };
}

function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  if (upper === undefined) return null;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? upper;
  return Math.round((lower + upper) / 2);
}
