/**
 * Shows a run while it goes on: in place on a terminal, or as plain lines where there is none.
 *
 * Theory of operation. Items are folded as they come; drawing is apart from it, at most eight times a second, and only lines that
 * differ from what stands on the screen are written. While something runs the clock moves, so one draw a second is due. The
 * cursor always rests below the last line: a process that dies at any moment leaves a usable terminal.
 * LIMITATION: where the terminal is made narrower, what it re-wraps stays on the screen until the end.
 */
import { createLineSplitter, type LineSplitter } from "../../observe/line-splitter.ts";
import { applyEvent, createRunView, type RunView } from "../../observe/run-view.ts";
import { sanitizeForTerminal } from "../../util/sanitize-text.ts";
import { type LiveDetail, renderFrame } from "./frame.ts";
import type { Palette } from "./palette.ts";
import { describeEvent } from "./plain-line.ts";
import { createPacer, createScreen } from "./screen.ts";
import type { OutputPiece, SamplePiece, ViewItem, ViewSource } from "./view-source.ts";

export interface LiveViewOptions {
  readonly stdout: NodeJS.WritableStream & { readonly columns?: number; readonly rows?: number };
  readonly palette: Palette;
  /** `live` redraws in place and needs a terminal; `plain` prints lines. */
  readonly mode: "live" | "plain";
  /** Plain mode: output lines too, each behind its task's id. */
  readonly showOutput: boolean;
  nowMs(): number;
  readonly otherWriter?: OtherWriter;
}

/** Somebody else who writes to the same terminal, such as a question on Ctrl+C. */
export interface OtherWriter {
  /** Nothing is drawn while it is. */
  readonly isOpen: boolean;
  /** Goes up with each writing: what the view drew before is left where it stands, and drawn anew below. */
  readonly writes: number;
}

const CLOCK_INTERVAL_MS = 1000;
const DEFAULT_SIZE = { columns: 80, rows: 24 };

/** Shows until the source ends; gives the final view, for the report. The live lines are gone by then. */
export function runLiveView(source: ViewSource, options: LiveViewOptions): Promise<RunView> {
  return options.mode === "live" ? showLive(source, options) : showPlain(source, options);
}

async function showPlain(source: ViewSource, options: LiveViewOptions): Promise<RunView> {
  const view = createRunView();
  const splitters = new Map<string, LineSplitter>();
  const { palette } = options;
  const print = (line: string): void => {
    options.stdout.write(`${line}\n`);
  };
  const printOutput = (taskId: string, lines: readonly string[]): void => {
    for (const line of lines) print(`${palette.paint("cyan", `[${taskId}]`)} ${line}`);
  };
  for await (const item of source.events) {
    if (isOutput(item)) {
      if (!options.showOutput) continue;
      printOutput(item.taskId, splitterFor(splitters, item).push(item.text));
    } else if (isEvent(item)) {
      if (item.event.type === "attempt-ended") {
        for (const stream of ["stdout", "stderr"]) {
          const key = `${item.event.taskId}#${item.event.attempt}/${stream}`;
          printOutput(item.event.taskId, splitters.get(key)?.end() ?? []);
          splitters.delete(key);
        }
      }
      applyEvent(view, item);
      const line = describeEvent(view, item, palette);
      if (line !== null) print(line);
    }
  }
  for (const [key, splitter] of splitters) printOutput(key.slice(0, key.lastIndexOf("#")), splitter.end());
  return view;
}

/** stdout and stderr are split into lines apart, so that a line of one does not end up in the middle of the other's. */
function splitterFor(splitters: Map<string, LineSplitter>, piece: OutputPiece): LineSplitter {
  const key = `${piece.taskId}#${piece.attempt}/${piece.stream}`;
  const known = splitters.get(key);
  if (known !== undefined) return known;
  const made = createLineSplitter();
  splitters.set(key, made);
  return made;
}

async function showLive(source: ViewSource, options: LiveViewOptions): Promise<RunView> {
  const view = createRunView();
  const details = new Map<string, LiveTask>();
  const screen = createScreen(options.stdout);
  let otherWrites = options.otherWriter?.writes ?? 0;
  /** Whether the terminal is the view's own; makes way where something else was written. */
  const isOurs = (): boolean => {
    const writes = options.otherWriter?.writes ?? 0;
    if (writes !== otherWrites) screen.leave();
    otherWrites = writes;
    return options.otherWriter?.isOpen !== true;
  };
  const draw = (): void => {
    if (!isOurs()) return;
    const size = {
      columns: options.stdout.columns || DEFAULT_SIZE.columns,
      rows: options.stdout.rows || DEFAULT_SIZE.rows,
    };
    screen.draw(renderFrame(view, details, { ...size, nowMs: options.nowMs(), palette: options.palette }));
  };
  const pacer = createPacer(draw);
  const clock = setInterval(() => {
    if (view.outcome === null) pacer.request();
  }, CLOCK_INTERVAL_MS);
  const redraw = (): void => {
    screen.forget();
    pacer.request();
  };
  options.stdout.on("resize", redraw);
  try {
    for await (const item of source.events) {
      if (isOutput(item)) takeOutput(details, item);
      else if (isEvent(item)) {
        applyEvent(view, item);
        if (item.event.type === "attempt-started") details.delete(item.event.taskId);
        if (item.event.type === "warning-raised") {
          const text = sanitizeForTerminal(item.event.message);
          const who = item.event.taskId === null ? "" : `${item.event.taskId}: `;
          screen.addAbove(options.palette.paint("yellow", `warning: ${who}${text}`));
        }
      } else takeSample(details, item);
      pacer.request();
    }
  } finally {
    clearInterval(clock);
    pacer.stop();
    options.stdout.off("resize", redraw);
    isOurs();
    screen.clear();
  }
  return view;
}

interface LiveTask extends LiveDetail {
  cpuPercent: number | null;
  memoryBytes: number | null;
  lastSample: SamplePiece | null;
  /** One splitter for both streams: only the newest line is shown. */
  readonly splitter: LineSplitter;
}

function liveTask(details: Map<string, LiveTask>, taskId: string): LiveTask {
  const known = details.get(taskId);
  if (known !== undefined) return known;
  const splitter = createLineSplitter({ maxLineChars: 1024 });
  const made: LiveTask = {
    cpuPercent: null,
    memoryBytes: null,
    lastSample: null,
    splitter,
    get lastLine() {
      return splitter.last;
    },
  };
  details.set(taskId, made);
  return made;
}

function takeOutput(details: Map<string, LiveTask>, piece: OutputPiece): void {
  liveTask(details, piece.taskId).splitter.push(piece.text);
}

function takeSample(details: Map<string, LiveTask>, sample: SamplePiece): void {
  const task = liveTask(details, sample.taskId);
  const before = task.lastSample;
  if (before !== null && before.cpuMs !== null && sample.cpuMs !== null && sample.atMs > before.atMs) {
    task.cpuPercent = Math.max(0, ((sample.cpuMs - before.cpuMs) / (sample.atMs - before.atMs)) * 100);
  }
  task.memoryBytes = sample.memoryBytes;
  task.lastSample = sample;
}

function isOutput(item: ViewItem): item is OutputPiece {
  return "type" in item && item.type === "output";
}

function isEvent(item: ViewItem): item is Exclude<ViewItem, OutputPiece | SamplePiece> {
  return "event" in item;
}
