import type { RunView, TaskView } from "../../observe/run-view.ts";
import { formatBytes } from "../../util/bytes.ts";
import { displayWidth, fitToWidth, truncateToWidth } from "./display-width.ts";
import { type Palette, STATE_STYLES } from "./palette.ts";
import { counted, describeCounts, describeTask, taskDurationMs } from "./task-words.ts";

/** What is known of a running task beside its events. */
export interface LiveDetail {
  readonly cpuPercent: number | null;
  readonly memoryBytes: number | null;
  /** The newest output line, sanitised. */
  readonly lastLine: string;
}

export interface FrameOptions {
  readonly columns: number;
  readonly rows: number;
  readonly nowMs: number;
  readonly palette: Palette;
}

const MAX_ID_COLUMNS = 28;
const TIME_COLUMNS = 6;
const USE_COLUMNS = 15;
/** Narrower terminals get no columns for CPU and memory. */
const MIN_COLUMNS_FOR_USE = 72;

/**
 * The lines of the live view, each narrower than the terminal, at most `rows - 1` of them (a full screen would scroll). With more
 * tasks than fit, what runs goes first, then what failed; the rest is counted.
 */
export function renderFrame(
  view: RunView,
  details: ReadonlyMap<string, LiveDetail>,
  options: FrameOptions,
): string[] {
  // One column is left free: a character in the last one makes some terminals wrap at once.
  const columns = Math.max(19, options.columns - 1);
  const room = Math.max(1, options.rows - 2);
  const all = [...view.tasks.values()];
  const shown = all.length <= room ? all : chooseTasks(all, room - 1);
  const idColumns = Math.min(
    MAX_ID_COLUMNS,
    Math.floor(columns / 3),
    Math.max(4, ...shown.map((task) => task.spec.id.length)),
  );
  const lines = [renderHead(view, columns, options)];
  for (const task of shown)
    lines.push(renderTask(view, task, details.get(task.spec.id), columns, idColumns, options));
  if (shown.length < all.length) {
    lines.push(
      options.palette.paint("dim", `  and ${counted(all.length - shown.length, "more task", "more tasks")}`),
    );
  }
  return lines;
}

const RANK: Readonly<Record<TaskView["state"], number>> = {
  running: 0,
  retrying: 1,
  failed: 2,
  waiting: 3,
  succeeded: 4,
  held: 5,
  cancelled: 6,
};

/** The tasks that matter most, in the order of the plan within each kind. */
function chooseTasks(all: readonly TaskView[], room: number): TaskView[] {
  const buckets: TaskView[][] = Array.from({ length: 7 }, () => []);
  for (const task of all) buckets[RANK[task.state]]?.push(task);
  return buckets.flat().slice(0, room);
}

function renderHead(view: RunView, columns: number, options: FrameOptions): string {
  const { palette } = options;
  const elapsed = view.startedMs === null ? "" : clockTime((view.endedMs ?? options.nowMs) - view.startedMs);
  const counts = describeCounts(view, palette);
  const plainCounts = describeCounts(view, { ...palette, paint: (_, text) => text });
  const stopping = view.cancelRequested && view.outcome === null ? "stopping  " : "";
  const title = view.runId ?? "starting";
  const used = displayWidth(plainCounts) + elapsed.length + stopping.length + 4;
  if (used > columns) return truncateToWidth(`${stopping}${elapsed}  ${plainCounts}`, columns);
  const room = columns - used;
  const head = room >= title.length ? `${palette.paint("bold", title)}  ` : "";
  return `${head}${palette.paint("yellow", stopping)}${counts}  ${palette.paint("dim", elapsed)}`;
}

function renderTask(
  view: RunView,
  task: TaskView,
  detail: LiveDetail | undefined,
  columns: number,
  idColumns: number,
  options: FrameOptions,
): string {
  const { palette } = options;
  const style = STATE_STYLES[task.state];
  const mark = palette.paint(style, palette.marks[task.state]);
  const id = fitToWidth(task.spec.id, idColumns);
  const took = taskDurationMs(task, options.nowMs);
  const time = (took === null ? "" : clockTime(took)).padStart(TIME_COLUMNS);
  const isRunning = task.state === "running";
  const hasUse = columns >= MIN_COLUMNS_FOR_USE;
  const use = hasUse ? `  ${(isRunning ? describeUse(detail) : "").padEnd(USE_COLUMNS)}` : "";
  const room = columns - 2 - idColumns - 1 - TIME_COLUMNS - (hasUse ? 2 + USE_COLUMNS : 0) - 2;
  const attempt = task.attempt > 1 && isRunning ? `(attempt ${task.attempt}) ` : "";
  const words = describeTask(view, task, options.nowMs);
  const output = isRunning && detail !== undefined && task.stopOrdered === null ? detail.lastLine : "";
  // What the agent says of itself stands before what it happens to print.
  const text = truncateToWidth(
    `${attempt}${[words, output].filter((part) => part !== "").join(palette.separator)}`,
    room,
  );
  const painted = isRunning ? text : palette.paint(task.state === "succeeded" ? "dim" : style, text);
  return `${mark} ${isRunning ? palette.paint("bold", id) : id} ${palette.paint("dim", time)}${palette.paint("dim", use)}  ${painted}`.trimEnd();
}

function describeUse(detail: LiveDetail | undefined): string {
  const cpu = detail?.cpuPercent == null ? "" : `${Math.round(detail.cpuPercent)} %`;
  const memory = detail?.memoryBytes == null ? "" : formatBytes(detail.memoryBytes);
  return `${cpu.padStart(5)} ${memory.padStart(9)}`;
}

/** `0:42`, `12:03`, `1:02:03`: keeps its width while it counts. */
export function clockTime(durationMs: number): string {
  const seconds = Math.max(0, Math.floor(durationMs / 1000));
  const two = (n: number): string => String(n).padStart(2, "0");
  const minutes = `${Math.floor(seconds / 60) % 60}`;
  const hours = Math.floor(seconds / 3600);
  return hours === 0
    ? `${minutes}:${two(seconds % 60)}`
    : `${hours}:${minutes.padStart(2, "0")}:${two(seconds % 60)}`;
}
