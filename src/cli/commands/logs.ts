/**
 * `bulkhead logs`: what tasks printed, from the files the attempts write. It needs no supervisor: following watches the files and the
 * event log's file, and reads the log for the end of the attempt; a slow look now and then covers watches that went stale.
 */
import { type FSWatcher, watch } from "node:fs";
import type { Command } from "commander";
import { RunnerError } from "../../model/runner-error.ts";
import { createLineSplitter, type LineSplitter } from "../../observe/line-splitter.ts";
import { createOutputReader, type OutputReader } from "../../observe/read-output-log.ts";
import { applyEvent, type RunView, type TaskView } from "../../observe/run-view.ts";
import type { EventStore } from "../../store/store.ts";
import { createDeferred } from "../../util/deferred.ts";
import { attemptDir, outputLogPath } from "../../util/state-layout.ts";
import type { CommandDeps } from "../command-deps.ts";
import type { CliContext } from "../context.ts";
import { findRun, findTasks, readRun } from "../find-run.ts";
import { parseCount } from "../options.ts";
import { choosePalette, type Palette } from "../render/palette.ts";
import { writeOut } from "../write-out.ts";

interface LogsFlags {
  readonly follow?: boolean;
  readonly attempt?: number;
}

/** How long a change may go unnoticed where the kernel's watch fails (network file systems, exhausted inotify). */
const RECONCILE_MS = 2_000;

/** `bulkhead logs`: see the head of this file. */
export function registerLogs(program: Command, context: CliContext, deps: CommandDeps): void {
  program
    .command("logs")
    .description("Show what the tasks of a run printed")
    .argument("[RUN]", "run id, its beginning or end, or `latest`; the newest run where it is left out")
    .argument("[TASK]", "only this task; all of them, each line behind its task, where it is left out")
    .option("-f, --follow", "go on until the task, or the run, has ended")
    .option("--attempt N", "this attempt of the task; the newest one unless set", parseCount)
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
        const session = openSession(context, store, view, tasks, flags, printer);
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
  return Math.min(MAX_ID_COLUMNS, Math.max(0, ...tasks.map((task) => task.spec.id.length)));
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
  tasks: readonly TaskView[],
  flags: LogsFlags,
  print: Printer,
): Session {
  const readers = new Map<string, { attempt: number; reader: OutputReader }>();
  const isGone = { stdout: false };

  /** Prints what is new of the attempts of one task; older attempts are finished before newer ones begin. */
  const pump = async (task: TaskView): Promise<void> => {
    const runId = view.runId ?? "";
    const last = flags.attempt ?? task.attempt;
    let open = readers.get(task.spec.id);
    if (open === undefined) {
      if (last === 0) return;
      open = {
        attempt: last,
        reader: createOutputReader(
          outputLogPath(context.stateDir, { runId, taskId: task.spec.id, attempt: last }),
        ),
      };
      readers.set(task.spec.id, open);
    }
    for (;;) {
      for await (const piece of open.reader.readNew()) {
        if (!(await print(task.spec.id, piece))) isGone.stdout = true;
        if (isGone.stdout) return;
      }
      if (open.attempt >= last) return;
      await print(task.spec.id, null);
      await open.reader.close();
      const attempt: number = open.attempt + 1;
      open = {
        attempt,
        reader: createOutputReader(outputLogPath(context.stateDir, { runId, taskId: task.spec.id, attempt })),
      };
      readers.set(task.spec.id, open);
    }
  };

  return {
    async readAll() {
      for (const task of tasks) {
        await pump(task);
        await print(task.spec.id, null);
        if (isGone.stdout) return;
      }
    },
    async follow() {
      const waker = createWaker(context.stateDir);
      try {
        for (;;) {
          waker.rearm();
          // Folded first: what an attempt printed is on disk before its end is in the log, so nothing is missed after it.
          for (const event of store.read(view.runId ?? findRun(store, undefined), view.lastSeq))
            applyEvent(view, event);
          const isOver = tasks.every((task) => isTaskOver(task, flags)) || view.outcome !== null;
          for (const task of tasks) {
            const started = flags.attempt ?? task.attempt;
            if (started > 0)
              waker.add(
                attemptDir(context.stateDir, {
                  runId: view.runId ?? "",
                  taskId: task.spec.id,
                  attempt: started,
                }),
              );
            await pump(task);
          }
          if (isOver || isGone.stdout) break;
          await waker.next();
        }
        for (const task of tasks) await print(task.spec.id, null);
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

interface Waker {
  /** Changes from here on settle the next `next()`. */
  rearm(): void;
  add(directory: string): void;
  next(): Promise<void>;
  close(): void;
}

function createWaker(stateDir: string): Waker {
  const watchers = new Map<string, FSWatcher>();
  let changed = createDeferred<void>();
  const add = (directory: string): void => {
    if (watchers.has(directory)) return;
    try {
      const watcher = watch(directory, () => changed.resolve());
      watcher.on("error", () => undefined /* the slow look covers it */);
      watchers.set(directory, watcher);
    } catch {
      // Not there yet, or no watch to be had: the slow look covers it, and the next round tries again.
    }
  };
  add(stateDir);
  return {
    rearm() {
      changed = createDeferred<void>();
    },
    add,
    async next() {
      const timer = setTimeout(() => changed.resolve(), RECONCILE_MS);
      await changed.promise;
      clearTimeout(timer);
    },
    close() {
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}
