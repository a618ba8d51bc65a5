import type { RunView } from "../../observe/run-view.ts";
import { formatBytes } from "../../util/bytes.ts";
import { formatDuration } from "../../util/duration.ts";
import { displayWidth, fitToWidth, truncateToWidth } from "./display-width.ts";
import { type Palette, STATE_STYLES } from "./palette.ts";
import { describeCounts, describeTarget, describeTask, STATE_WIDTH, taskDurationMs } from "./task-words.ts";

export interface StatusOptions {
  readonly palette: Palette;
  readonly columns: number;
  readonly nowMs: number;
  /** False where the log says the run goes on but no supervisor lives to drive it. */
  readonly isDriven: boolean;
}

const MAX_ID_COLUMNS = 32;

/** One run: what it is, how it stands, and a line for each task. */
export function renderStatus(view: RunView, options: StatusOptions): string {
  const { palette, columns, nowMs } = options;
  const { settings } = view;
  const lines = [`Run ${palette.paint("bold", view.runId ?? "")}  ${describeState(view, options)}`];
  if (settings !== null) {
    const ref = settings.baseRef === null ? "" : ` (${settings.baseRef})`;
    const head = settings.headCommit ?? settings.baseCommit;
    const changes = settings.headCommit === undefined ? "" : " with uncommitted changes";
    lines.push(`On  ${settings.repository} at ${head.slice(0, 12)}${ref}${changes}`);
  }
  lines.push(`    ${describeCounts(view, palette)}`, "");
  const tasks = [...view.tasks.values()];
  const idColumns = tasks.reduce(
    (max, task) => Math.min(MAX_ID_COLUMNS, Math.max(max, task.spec.id.length)),
    4,
  );
  const memoryColumns = tasks.some((task) => task.use?.peakMemoryBytes != null) ? 9 : 0;
  for (const task of tasks) {
    const style = STATE_STYLES[task.state];
    const took = taskDurationMs(task, nowMs);
    const time = (took === null ? "" : formatDuration(took)).padStart(8);
    const peak = task.use?.peakMemoryBytes;
    const memory = (peak == null ? "" : formatBytes(peak)).padStart(memoryColumns);
    const used = 2 + idColumns + 2 + STATE_WIDTH + 1 + 8 + 1 + memoryColumns + 2;
    const words = truncateToWidth(describeTask(view, task, nowMs), columns - 1 - used);
    lines.push(
      `${palette.paint(style, palette.marks[task.state])} ${fitToWidth(task.spec.id, idColumns)}  ${palette.paint(
        style,
        task.state.padEnd(STATE_WIDTH),
      )} ${palette.paint("dim", `${time} ${memory}`)}  ${words}`.trimEnd(),
    );
  }
  for (const applied of view.applied) {
    const what = applied.undone ? "applied and undone" : "applied";
    lines.push(
      "",
      `${palette.paint("green", what)}: ${applied.taskIds.join(", ")} to ${describeTarget(applied.target)}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

function describeState(view: RunView, options: StatusOptions): string {
  const { palette, nowMs } = options;
  const tookMs = view.startedMs === null ? 0 : (view.endedMs ?? nowMs) - view.startedMs;
  if (view.outcome !== null) {
    const style =
      view.outcome.status === "succeeded" ? "green" : view.outcome.status === "failed" ? "red" : "yellow";
    return palette.paint(style, `${view.outcome.status} in ${formatDuration(tookMs)}`);
  }
  if (!options.isDriven) {
    return palette.paint("yellow", "interrupted: no supervisor drives it");
  }
  return palette.paint(
    "cyan",
    `${view.cancelRequested ? "stopping" : "running"} for ${formatDuration(tookMs)}`,
  );
}

/** Runs, newest first, a line each. */
export function renderRunList(
  views: readonly RunView[],
  options: Omit<StatusOptions, "isDriven"> & { isDriven(runId: string): boolean },
): string {
  if (views.length === 0) return "no runs yet\n";
  const lines = views.map((view) => {
    const state = view.outcome?.status ?? (options.isDriven(view.runId ?? "") ? "running" : "interrupted");
    const style =
      state === "succeeded" ? "green" : state === "failed" ? "red" : state === "running" ? "cyan" : "yellow";
    const tookMs =
      view.startedMs === null ? 0 : (view.endedMs ?? view.lastMs ?? options.nowMs) - view.startedMs;
    const head = `${view.runId ?? ""}  ${options.palette.paint(style, state.padEnd(11))} ${formatDuration(tookMs).padStart(8)}  `;
    const counts = describeCounts(view, options.palette);
    const used = 22 + 2 + 11 + 1 + 8 + 2 + displayWidth(describeCounts(view, plain(options.palette))) + 2;
    const where = truncateToWidth(view.settings?.repository ?? "", options.columns - 1 - used);
    return `${head}${counts}  ${options.palette.paint("dim", where)}`.trimEnd();
  });
  return `${lines.join("\n")}\n`;
}

function plain(palette: Palette): Palette {
  return { ...palette, paint: (_, text) => text };
}
