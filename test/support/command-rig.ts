import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Command } from "commander";
import type { CommandDeps } from "../../src/cli/command-deps.ts";
import type { CliContext } from "../../src/cli/context.ts";
import type { RunEvent } from "../../src/model/event.ts";
import { RunnerError } from "../../src/model/runner-error.ts";
import { openEventStore } from "../../src/store/sqlite/sqlite-event-store.ts";
import type { EventStore } from "../../src/store/store.ts";
import { databasePath } from "../../src/util/state-layout.ts";
import { RUN } from "./sample-run.ts";

/** Runs single subcommands in this process, over a real event store in a directory of their own. */
export interface CommandRig {
  readonly stateDir: string;
  readonly store: EventStore;
  record(...events: RunEvent[]): void;
  /** Parses and performs; output is collected, a RunnerError is given back. */
  run(register: Register, argv: readonly string[], options?: RunOptions): Promise<CommandResult>;
  /** Starts and gives the live output stream. */
  start(register: Register, argv: readonly string[], options?: RunOptions): RunningCommand;
  dispose(): void;
}

type Register = (program: Command, context: CliContext, deps: CommandDeps) => void;

export interface RunOptions {
  readonly deps?: Partial<CommandDeps>;
  readonly isTty?: boolean;
  readonly columns?: number;
  /** Typed on the terminal. */
  readonly typed?: string;
}

export interface CommandResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly error: RunnerError | null;
  readonly exitCode: number | string | undefined;
}

export interface RunningCommand {
  readonly stdout: PassThrough;
  readonly done: Promise<CommandResult>;
}

/** What a command that was not meant to need it is given. */
function unexpected(name: string): () => never {
  return () => {
    throw new Error(`${name} was not expected to be called`);
  };
}

export function createCommandRig(): CommandRig {
  const stateDir = mkdtempSync(join(tmpdir(), "bulkhead-cli-"));
  const store = openEventStore(databasePath(stateDir), { nowMs: () => 1_800_000_000_000 });

  const start = (register: Register, argv: readonly string[], options: RunOptions = {}): RunningCommand => {
    const tty = { isTTY: options.isTty ?? false, columns: options.columns ?? 80 };
    const stdout = Object.assign(new PassThrough(), tty);
    const stderr = Object.assign(new PassThrough(), tty);
    const stdin = Object.assign(new PassThrough(), tty);
    const pieces = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    stdout.on("data", (piece: Buffer) => pieces.stdout.push(piece));
    stderr.on("data", (piece: Buffer) => pieces.stderr.push(piece));
    if (options.typed !== undefined) stdin.end(options.typed);
    const context: CliContext = {
      cwd: stateDir,
      env: { LANG: "C.UTF-8", NO_COLOR: "1" },
      stateDir,
      cacheDir: stateDir,
      stdout,
      stderr,
      stdin,
    };
    const deps: CommandDeps = {
      openStore: (readOnly) => openEventStore(databasePath(stateDir), { readOnly }),
      connectSupervisor: () => Promise.resolve(null),
      loadPlan: unexpected("loadPlan"),
      diffPatch: unexpected("diffPatch"),
      integratePatches: unexpected("integratePatches"),
      applyPatches: unexpected("applyPatches"),
      recoverApplies: () => Promise.resolve([]),
      undoApply: unexpected("undoApply"),
      gc: unexpected("gc"),
      ...options.deps,
    };
    const program = new Command("bulkhead").exitOverride();
    register(program, context, deps);
    const perform = async (): Promise<CommandResult> => {
      let error: RunnerError | null = null;
      process.exitCode = undefined;
      try {
        await program.parseAsync(["node", "bulkhead", ...argv]);
      } catch (cause) {
        if (!(cause instanceof RunnerError)) throw cause;
        error = cause;
      }
      const { exitCode } = process;
      process.exitCode = undefined;
      return {
        stdout: Buffer.concat(pieces.stdout).toString(),
        stderr: Buffer.concat(pieces.stderr).toString(),
        error,
        exitCode: exitCode ?? undefined,
      };
    };
    return { stdout, done: perform() };
  };

  return {
    stateDir,
    store,
    record: (...events) => void store.append(RUN, events),
    start,
    run: (register, argv, options) => start(register, argv, options).done,
    dispose() {
      store.close();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
