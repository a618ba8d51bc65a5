/**
 * `bulkhead logs`: what tasks printed, from the files the attempts write. It needs no supervisor: following watches the files and the
 * event log's file, and reads the log for the end of the attempt; a slow look now and then covers watches that went stale.
 */
import type { Command } from "commander";
import { RunnerError } from "../../model/runner-error.ts";
import { createLineSplitter, type LineSplitter } from "../../observe/line-splitter.ts";
import { createOutputReader, type OutputReader } from "../../observe/read-output-log.ts";
import { applyEvent, type RunView, type TaskView } from "../../observe/run-view.ts";
import type { EventStore } from "../../store/store.ts";
import { attemptDir, outputLogPath } from "../../util/state-layout.ts";
import type { CommandDeps } from "../command-deps.ts";
import type { CliContext } from "../context.ts";
import { findRun, findTasks, readRun } from "../find-run.ts";
import { parseCount } from "../options.ts";
import { choosePalette, type Palette } from "../render/palette.ts";
import { createWaker } from "../waker.ts";
import { writeOut } from "../write-out.ts";

interface LogsFlags {
  readonly follow?: boolean;
  readonly attempt?: number;
}

/** `bulkhead logs`: see the head of this file. */
export function registerLogs(program: Command, context: CliContext, deps: CommandDeps): void {
  program
    .command("logs")
    .description("Show what the tasks of a run printed")
    .argument("[RUN]", "run id, its beginning or end, or `latest`; the newest run where it is left out")
    .argument("[TASK]", "only this task; all of them, each line behind its task, where it is left out")
    .option("-f, --follow", "go on until the task, or the run, has ended")
    .option("--attempt <N>", "this attempt of the task; the newest one unless set", parseCount)
    .addHelpText(
      "after",
      "\nSecrets are redacted when the log is written. On a terminal control characters are taken out; piped output of one task\nis as it was written.\n\nExamples:\n  bulkhead logs\n  bulkhead logs latest auth_refactor --attempt 1\n  bulkhead logs latest auth_refactor -f",
    )
    .action(async (run: string | undefined, task: string | undefined, flags: LogsFlags) => {
      const store = deps.openStore(true);
      try {
        const view = readRun(store, findRun(store, run));
        if (flags.attempt !== undefined && task === undefined) {
          throw new RunnerError("usage", "--attempt needs a TASK");
        }
        const tasks = findTasks(view, task === undefined ? [] : [task]);
        const named = task === undefined ? undefined : tasks[0];
        if (named !== undefined) checkAttempt(named, flags);
        const palette = choosePalette(context.env, context.stdout.isTTY === true);
        const printer = createPrinter(context, palette, task === undefined ? columnsOf(tasks) : null);
        const session = openSession(context, store, view, named ?? null, flags, printer);
        try {
          await (flags.follow === true ? session.follow() : session.readAll());
        } finally {
          await session.close();
        }
      } finally {
        store.close();
      }
    });
}

function checkAttempt(task: TaskView, flags: LogsFlags): void {
  if (flags.attempt !== undefined && flags.attempt > task.attempt && flags.follow !== true) {
    throw new RunnerError("usage", `${task.spec.id} has ${task.attempt} attempts, not ${flags.attempt}`);
  }
  if (task.attempt > 0 || flags.follow === true) return;
  const because = task.heldBecause === null ? "" : `, because ${task.heldBecause} did not succeed`;
  throw new RunnerError("usage", `${task.spec.id} has not started (${task.state}${because}): it has no log`, {
    hint: "add -f to wait for it",
  });
}

/** Takes pieces of a task's log; false where nobody reads any more. */
type Printer = (taskId: string, piece: Buffer | null) => Promise<boolean>;

/** Prefixed lines where `idColumns` is set, else the log as it is (piped) or without what steers a terminal. */
function createPrinter(context: CliContext, palette: Palette, idColumns: number | null): Printer {
  const isTty = context.stdout.isTTY === true;
  const splitters = new Map<string, LineSplitter>();
  if (idColumns === null && !isTty) {
    return (_, piece) => (piece === null ? Promise.resolve(true) : writeOut(context.stdout, piece));
  }
  return async (taskId, piece) => {
    const splitter = splitters.get(taskId) ?? createLineSplitter({ maxLineChars: 64 * 1024 });
    splitters.set(taskId, splitter);
    const lines = piece === null ? splitter.end() : splitter.push(piece);
    if (lines.length === 0) return true;
    const prefix =
      idColumns === null
        ? ""
        : `${palette.paint("cyan", `[${taskId}]`)}${" ".repeat(Math.max(0, idColumns - taskId.length))} `;
    return writeOut(context.stdout, lines.map((line) => `${prefix}${line}\n`).join(""));
  };
}

const MAX_ID_COLUMNS = 24;

function columnsOf(tasks: readonly TaskView[]): number {
  return tasks.reduce((max, task) => Math.min(MAX_ID_COLUMNS, Math.max(max, task.spec.id.length)), 0);
}

interface Session {
  readAll(): Promise<void>;
  follow(): Promise<void>;
  close(): Promise<void>;
}

function openSession(
  context: CliContext,
  store: EventStore,
  view: RunView,
  named: TaskView | null,
  flags: LogsFlags,
  print: Printer,
): Session {
  const runId = view.runId ?? findRun(store, undefined);
  /** Asked anew each time: a run can get more tasks while it is followed. */
  const tasks = (): readonly TaskView[] => (named === null ? [...view.tasks.values()] : [named]);
  const readers = new Map<string, { attempt: number; reader: OutputReader }>();

  /** Prints what is new of one task, an older attempt to its end before the next; false where nobody reads any more. */
  const pump = async (task: TaskView): Promise<boolean> => {
    const last = flags.attempt ?? task.attempt;
    const openReader = (attempt: number): { attempt: number; reader: OutputReader } => {
      const path = outputLogPath(context.stateDir, { runId, taskId: task.spec.id, attempt });
      const opened = { attempt, reader: createOutputReader(path) };
      readers.set(task.spec.id, opened);
      return opened;
    };
    if (last === 0) return true;
    let open = readers.get(task.spec.id) ?? openReader(last);
    for (;;) {
      for await (const piece of open.reader.readNew()) {
        if (!(await print(task.spec.id, piece))) return false;
      }
      if (open.attempt >= last) return true;
      await print(task.spec.id, null);
      await open.reader.close();
      open = openReader(open.attempt + 1);
    }
  };

  return {
    async readAll() {
      for (const task of tasks()) {
        if (!(await pump(task))) return;
        await print(task.spec.id, null);
      }
    },
    async follow() {
      const waker = createWaker(context.stateDir);
      try {
        for (;;) {
          waker.rearm();
          // Folded first: what an attempt printed is on disk before its end is in the log, so nothing is missed after it.
          for (const event of store.read(runId, view.lastSeq)) applyEvent(view, event);
          const isOver = tasks().every((task) => isTaskOver(task, flags)) || view.outcome !== null;
          for (const task of tasks()) {
            const attempt = flags.attempt ?? task.attempt;
            if (attempt > 0)
              waker.add(attemptDir(context.stateDir, { runId, taskId: task.spec.id, attempt }));
            if (!(await pump(task))) return;
          }
          if (isOver) break;
          await waker.next();
        }
        for (const task of tasks()) await print(task.spec.id, null);
      } finally {
        waker.close();
      }
    },
    async close() {
      for (const { reader } of readers.values()) await reader.close();
    },
  };
}

/** Whether nothing more can come: the task is at its end, or a later attempt than the wanted one has begun. */
function isTaskOver(task: TaskView, flags: LogsFlags): boolean {
  if (flags.attempt !== undefined && task.attempt > flags.attempt) return true;
  return task.state !== "waiting" && task.state !== "running" && task.state !== "retrying";
}
