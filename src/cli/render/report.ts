import { explainFailure } from "../../observe/explain-failure.ts";
import { computeSavings } from "../../observe/run-savings.ts";
import type { RunView, TaskView } from "../../observe/run-view.ts";
import { formatBytes } from "../../util/bytes.ts";
import { formatDuration } from "../../util/duration.ts";
import { formatCount } from "../../util/format-count.ts";
import { sanitizeForTerminal } from "../../util/sanitize-text.ts";
import { outputLogPath } from "../../util/state-layout.ts";
import { fitToWidth } from "./display-width.ts";
import { type Palette, STATE_STYLES } from "./palette.ts";
import {
  counted,
  describeCounts,
  describePatch,
  describeRisks,
  describeSecrets,
  taskDurationMs,
} from "./task-words.ts";

export interface ReportOptions {
  readonly palette: Palette;
  readonly stateDir: string;
  readonly nowMs: number;
  /** What to type for bulkhead; `bulkhead` unless set. */
  readonly program?: string;
}

const MAX_ID_COLUMNS = 32;

/** What came of a run: what changed, what failed and why, what was held because of it, and what to do next. */
export function renderReport(view: RunView, options: ReportOptions): string {
  const { palette } = options;
  const tasks = [...view.tasks.values()];
  const sections = [
    renderHeadline(view, options),
    renderChanges(tasks, options),
    renderSecrets(tasks, palette),
    renderRisks(tasks, palette),
    renderFailures(view, tasks, options),
    renderHeld(view, palette),
    renderCancelled(tasks, palette),
    renderWarnings(view, palette),
    renderNext(view, tasks, options),
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}

function renderHeadline(view: RunView, options: ReportOptions): string[] {
  const { palette } = options;
  const status = view.outcome?.status ?? "running";
  const style = status === "succeeded" ? "green" : status === "failed" ? "red" : "yellow";
  const tookMs = view.startedMs === null ? 0 : (view.endedMs ?? options.nowMs) - view.startedMs;
  const verb = view.outcome === null ? "running for" : `${status} in`;
  return [
    `Run ${palette.paint("bold", view.runId ?? "")} ${palette.paint(style, `${verb} ${formatDuration(tookMs)}`)}: ${describeCounts(view, palette)}`,
  ];
}

function renderChanges(tasks: readonly TaskView[], { palette, nowMs }: ReportOptions): string[] {
  const done = tasks.filter((task) => task.state === "succeeded");
  if (done.length === 0) return [];
  const width = idColumns(done);
  const lines = done.map((task) => {
    const mark = palette.paint(STATE_STYLES.succeeded, palette.marks.succeeded);
    const summary = task.patchSummary === null ? "" : describePatch(task.patchSummary);
    const ignored = task.patch?.ignored.files ?? 0;
    const left =
      ignored === 0
        ? ""
        : `, ${counted(ignored, "ignored file", "ignored files")} (${formatBytes(task.patch?.ignored.bytes ?? 0)}) left out`;
    const attempts = task.attempt > 1 ? `, attempt ${task.attempt}` : "";
    const took = formatDuration(taskDurationMs(task, nowMs) ?? 0);
    return `  ${mark} ${fitToWidth(task.spec.id, width)}  ${summary}${left}  ${palette.paint("dim", `(${took}${attempts})`)}`;
  });
  return [palette.paint("bold", "Changed"), ...lines];
}

function renderSecrets(tasks: readonly TaskView[], palette: Palette): string[] {
  const flagged = tasks.filter((task) => (task.patch?.secrets ?? []).length > 0);
  if (flagged.length === 0) return [];
  const lines = flagged.flatMap((task) =>
    describeSecrets(task.patch?.secrets ?? []).map(
      (line) => `  ${palette.paint("yellow", "!")} ${task.spec.id}: ${line}`,
    ),
  );
  return [palette.paint("bold", "What looks like secrets, in patches"), ...lines];
}

function renderRisks(tasks: readonly TaskView[], palette: Palette): string[] {
  const lines = tasks.flatMap((task) =>
    describeRisks(task.patch?.risks ?? []).map(
      (line) => `  ${palette.paint("yellow", "!")} ${task.spec.id}: ${line}`,
    ),
  );
  return lines.length === 0 ? [] : [palette.paint("bold", "To look at before you apply"), ...lines];
}

function renderFailures(view: RunView, tasks: readonly TaskView[], options: ReportOptions): string[] {
  const { palette, stateDir, nowMs } = options;
  const failed = tasks.filter((task) => task.state === "failed");
  if (failed.length === 0) return [];
  const lines = failed.flatMap((task) => {
    const mark = palette.paint(STATE_STYLES.failed, palette.marks.failed);
    const took = formatDuration(taskDurationMs(task, nowMs) ?? 0);
    const attempts = task.attempt > 1 ? `, ${task.attempt} attempts` : "";
    const why = task.failure === null ? null : explainFailure(task.failure);
    const key = { runId: view.runId ?? "", taskId: task.spec.id, attempt: task.attempt };
    return [
      `  ${mark} ${task.spec.id}: ${why?.headline ?? "failed"} ${palette.paint("dim", `(${took}${attempts})`)}`,
      ...(why?.detail ?? []).map((line) => `      ${line}`),
      ...(why === null ? [] : [`      ${palette.paint("dim", "next:")} ${why.hint}`]),
      ...(hasLog(task) ? [`      ${palette.paint("dim", "log: ")} ${outputLogPath(stateDir, key)}`] : []),
    ];
  });
  return [palette.paint("bold", "Failed"), ...lines];
}

/** Whether the newest attempt came as far as a container that could print. */
function hasLog({ attempt, failure }: TaskView): boolean {
  if (attempt === 0) return false;
  switch (failure?.reason) {
    case "image-missing":
    case "parents-conflict":
      return false;
    case "host-error":
    case "engine-lost":
    case "runner-bug":
      return !["snapshot", "door", "create"].includes(failure.phase);
    default:
      return true;
  }
}

function renderHeld(view: RunView, palette: Palette): string[] {
  const savings = computeSavings(view);
  if (savings.heldTasks === 0) return [];
  const lines = savings.causes.map(({ taskId, held }) => {
    const mark = palette.paint(STATE_STYLES.held, palette.marks.held);
    return `  ${mark} because of ${taskId}: ${listIds(held)}`;
  });
  const atMost =
    savings.attemptsAtMost === savings.attemptsNotStarted
      ? ""
      : ` (up to ${formatCount(savings.attemptsAtMost)} with retries)`;
  const attempts = `${counted(savings.attemptsNotStarted, "attempt", "attempts")}${atMost}`;
  const each =
    savings.medianAttemptMs === null
      ? ""
      : `; an attempt of this run took ${formatDuration(savings.medianAttemptMs)} (median)`;
  return [
    palette.paint("bold", "Held"),
    ...lines,
    `  Work saved: ${counted(savings.heldTasks, "task", "tasks")}, ${attempts} not started${each}.`,
  ];
}

function renderCancelled(tasks: readonly TaskView[], palette: Palette): string[] {
  const cancelled = tasks.filter((task) => task.state === "cancelled");
  if (cancelled.length === 0) return [];
  return [palette.paint("bold", "Cancelled"), `  ${listIds(cancelled.map((task) => task.spec.id))}`];
}

const MAX_WARNINGS_SHOWN = 10;

function renderWarnings(view: RunView, palette: Palette): string[] {
  if (view.warningCount === 0) return [];
  const shown = view.warnings.slice(-MAX_WARNINGS_SHOWN);
  const lines = shown.map(
    ({ taskId, message }) => `  ${taskId === null ? "" : `${taskId}: `}${sanitizeForTerminal(message)}`,
  );
  const more = view.warningCount - shown.length;
  return [
    palette.paint("bold", "Warnings"),
    ...(more > 0 ? [`  ${more} earlier ones are in the log`] : []),
    ...lines,
  ];
}

function renderNext(view: RunView, tasks: readonly TaskView[], options: ReportOptions): string[] {
  const { palette, program = "bulkhead" } = options;
  if (view.outcome === null) return [];
  const run = view.runId ?? "";
  const next: Array<readonly [string, string]> = [];
  const changed = tasks.filter((task) => task.state === "succeeded" && task.patch?.empty === false);
  if (changed.length > 0) {
    next.push([`${program} diff ${run}`, "see what changed"]);
    next.push([`${program} apply ${run}`, "take it over into your repository"]);
  }
  const failed = tasks.find((task) => task.state === "failed" && hasLog(task));
  if (failed !== undefined) next.push([`${program} logs ${run} ${failed.spec.id}`, "see what it printed"]);
  if (next.length === 0) return [];
  const width = Math.max(...next.map(([command]) => command.length));
  return [
    palette.paint("bold", "Next"),
    ...next.map(([command, what]) => `  ${command.padEnd(width)}  ${palette.paint("dim", what)}`),
  ];
}

const MAX_IDS = 12;

function listIds(ids: readonly string[]): string {
  if (ids.length <= MAX_IDS) return ids.join(", ");
  return `${ids.slice(0, MAX_IDS).join(", ")} and ${counted(ids.length - MAX_IDS, "more", "more")}`;
}

function idColumns(tasks: readonly TaskView[]): number {
  return tasks.reduce((max, task) => Math.min(MAX_ID_COLUMNS, Math.max(max, task.spec.id.length)), 1);
}
