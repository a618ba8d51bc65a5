import type { LoggedEvent } from "../../model/event.ts";
import { explainFailure } from "../../observe/explain-failure.ts";
import type { RunView } from "../../observe/run-view.ts";
import { formatDuration } from "../../util/duration.ts";
import { sanitizeForTerminal } from "../../util/sanitize-text.ts";
import { type Palette, STATE_STYLES } from "./palette.ts";
import { counted, describePatch } from "./task-words.ts";

/** One line for an event that changes how things stand, after it was folded into `view`; null for the others. */
export function describeEvent(view: RunView, logged: LoggedEvent, palette: Palette): string | null {
  const line = describe(view, logged, palette);
  return line === null ? null : `${palette.paint("dim", timeOfDay(logged.atMs))} ${line}`;
}

function describe(view: RunView, { event, atMs }: LoggedEvent, palette: Palette): string | null {
  const taskLine = (taskId: string, state: keyof typeof STATE_STYLES, text: string): string =>
    `${palette.paint(STATE_STYLES[state], palette.marks[state])} ${taskId} ${text}`;
  switch (event.type) {
    case "run-submitted":
      return `run ${view.runId ?? ""} with ${counted(event.tasks.length, "task", "tasks")}, ${event.settings.slots} at once`;
    case "attempt-started":
      return taskLine(
        event.taskId,
        "running",
        event.attempt === 1 ? "started" : `started, attempt ${event.attempt}`,
      );
    case "retry-scheduled":
      return taskLine(
        event.taskId,
        "retrying",
        `${explainFailure(event.failure).headline}; attempt ${event.attempt + 1} in ${formatDuration(event.delayMs)}`,
      );
    case "task-succeeded": {
      const task = view.tasks.get(event.taskId);
      const summary = task?.patchSummary;
      return taskLine(
        event.taskId,
        "succeeded",
        `succeeded in ${tookTime(task?.startedMs, atMs)}: ${summary ? describePatch(summary) : "no changes"}`,
      );
    }
    case "task-failed": {
      const took = tookTime(view.tasks.get(event.taskId)?.startedMs, atMs);
      return taskLine(event.taskId, "failed", `failed in ${took}: ${explainFailure(event.failure).headline}`);
    }
    case "task-held":
      return taskLine(event.taskId, "held", `held: ${event.because} did not succeed`);
    case "task-cancelled":
      return taskLine(event.taskId, "cancelled", "cancelled");
    case "task-added":
      return `task ${event.task.id} added${event.by === null ? "" : ` by ${event.by}`}`;
    case "cancel-requested":
      return `${event.taskId ?? "run"} is being cancelled`;
    case "warning-raised":
      return palette.paint(
        "yellow",
        `warning: ${event.taskId === null ? "" : `${event.taskId}: `}${sanitizeForTerminal(event.message)}`,
      );
    case "run-finished":
      return `run ${event.outcome.status} in ${tookTime(view.startedMs, atMs)}`;
    default:
      return null;
  }
}

function tookTime(startedMs: number | null | undefined, endedMs: number): string {
  return startedMs == null ? "no time" : formatDuration(Math.max(0, endedMs - startedMs));
}

/** Local time of day: the reader compares it with the clock on the wall. */
function timeOfDay(atMs: number): string {
  const date = new Date(atMs);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}
