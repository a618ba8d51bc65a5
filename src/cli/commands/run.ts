import type { Command } from "commander";
import { Option } from "commander";
import { DIRTY_MODES, type DirtyMode } from "../../model/run.ts";
import { RunnerError } from "../../model/runner-error.ts";
import type { RunView } from "../../observe/run-view.ts";
import { toJson } from "../../observe/run-view-json.ts";
import type { RunHandle, RunMessage } from "../../supervisor/run-handle.ts";
import type { RunPlanOptions, StartedRun } from "../../supervisor/run-plan.ts";
import { askDirty } from "../ask-dirty.ts";
import { type CliContext, EXIT, type ExitCode } from "../context.ts";
import { askOnInterrupt, type InterruptControl } from "../interrupt.ts";
import { runLiveView } from "../render/live-view.ts";
import { choosePalette } from "../render/palette.ts";
import { renderReport } from "../render/report.ts";
import type { ViewItem } from "../render/view-source.ts";

export interface RunCommandDeps {
  startRun(options: RunPlanOptions): Promise<StartedRun>;
}

interface RunOptions {
  readonly repo?: string;
  readonly slots?: number;
  readonly engine?: string;
  readonly workspace: "auto" | "overlay" | "copy";
  readonly runtime?: string;
  readonly output?: boolean;
  readonly json?: boolean;
  readonly detach?: boolean;
  readonly preflight: boolean;
  readonly dirty?: DirtyMode;
}

/** `bulkhead run`: starts a plan, shows it, ends with the report. */
export function registerRun(program: Command, context: CliContext, deps: RunCommandDeps): void {
  program
    .command("run")
    .description("Run a plan: a folder of tasks, plan files, or - for standard input.")
    .argument("<plan...>", "files or folders with tasks (JSON or YAML); - reads standard input")
    .option("--repo <dir>", "repository to work on (default: the one around the current directory)")
    .addOption(
      new Option("--slots <n>", "attempts at once (default: twice the cores)").argParser(wholeNumber),
    )
    .option("--engine <endpoint>", "container engine, e.g. unix:///var/run/docker.sock (default: found)")
    .addOption(
      new Option("--workspace <driver>", "how workspaces are made")
        .choices(["auto", "overlay", "copy"])
        .default("auto"),
    )
    .option("--runtime <name>", "OCI runtime of every task: runc, crun, runsc, ... (default: the plan's)")
    .addOption(
      new Option(
        "--dirty <mode>",
        "uncommitted changes: ignore, include in every snapshot, or refuse to start (default: ask on a terminal, else ignore)",
      ).choices(DIRTY_MODES),
    )
    .option("--output", "print what the tasks print, each line behind its task's id")
    .option("-d, --detach", "print the run's id and return; the run goes on")
    .option("--json", "print one JSON document at the end; progress goes to standard error")
    .option("--no-preflight", "skip the checks of disk, memory and images")
    .addHelpText(
      "after",
      "\nExamples:\n  bulkhead run tasks/\n  bulkhead run plan.yaml --slots 8 --output\n  generate-tasks | bulkhead run - --json\n\nExit codes: 0 all done, 1 some task failed, 2 usage or plan, 3 machine, 130 interrupted",
    )
    .action(async (plan: string[], options: RunOptions) => {
      process.exitCode = await run(context, deps, plan, options);
    });
}

async function run(
  context: CliContext,
  deps: RunCommandDeps,
  plan: readonly string[],
  options: RunOptions,
): Promise<ExitCode> {
  const say = options.json ? context.stderr : context.stdout;
  const isLive = say.isTTY === true && !options.output && context.env["TERM"] !== "dumb";
  const started = await deps.startRun({
    plan,
    stdin: context.stdin,
    workspace: options.workspace,
    skipPreflight: !options.preflight,
    output: isLive || options.output === true,
    samples: isLive,
    ...(options.dirty === undefined ? {} : { dirty: options.dirty }),
    ...(canAsk(context, plan) ? { askDirty: (files) => askDirty(context, files) } : {}),
    ...(options.repo === undefined ? {} : { repository: options.repo }),
    ...(options.slots === undefined ? {} : { slots: options.slots }),
    ...(options.runtime === undefined ? {} : { runtime: options.runtime }),
    ...(options.engine === undefined ? {} : { engine: options.engine }),
  });
  for (const warning of started.warnings) context.stderr.write(`warning: ${warning}\n`);
  if (started.settings.dirty) {
    context.stderr.write(
      "warning: the work tree has uncommitted changes; the run starts from the last commit without them\n",
    );
  }
  if (options.detach) {
    started.detach();
    context.stdout.write(
      options.json ? `${JSON.stringify({ runId: started.runId })}\n` : `${started.runId}\n`,
    );
    return EXIT.done;
  }
  return watch(context, started, say, isLive, options);
}

/** A plan that comes on standard input takes the place where an answer would come from. */
function canAsk(context: CliContext, plan: readonly string[]): boolean {
  return context.stdin.isTTY === true && context.stderr.isTTY === true && !plan.includes("-");
}

async function watch(
  context: CliContext,
  started: StartedRun,
  say: CliContext["stdout"] | CliContext["stderr"],
  isLive: boolean,
  options: RunOptions,
): Promise<ExitCode> {
  const interrupt = askOnInterrupt(context, started);
  try {
    const palette = choosePalette(context.env, say.isTTY === true);
    const view = await runLiveView(
      { events: viewItems(started, interrupt) },
      {
        stdout: say,
        palette,
        mode: isLive ? "live" : "plain",
        showOutput: options.output === true,
        nowMs: Date.now,
        otherWriter: interrupt,
      },
    );
    if (interrupt.wasLeft) {
      say.write(
        `left run ${started.runId} going; see it with \`bulkhead status\`, end it with \`bulkhead cancel ${started.runId}\`\n`,
      );
      return EXIT.done;
    }
    if (options.json) context.stdout.write(`${JSON.stringify(toJson(view), null, 2)}\n`);
    else say.write(renderReport(view, { palette, stateDir: context.stateDir, nowMs: Date.now() }));
    return interrupt.wasStopped ? EXIT.interrupted : exitCodeOf(view);
  } finally {
    interrupt.release();
  }
}

/** Feeds the view; while a question is on the screen, items wait so that it is not painted over. */
async function* viewItems(run: RunHandle, interrupt: InterruptControl): AsyncIterableIterator<ViewItem> {
  for await (const message of run.messages()) {
    await interrupt.answered();
    if (interrupt.wasLeft) return;
    yield* toViewItems(message);
  }
}

function* toViewItems(message: RunMessage): Iterable<ViewItem> {
  switch (message.kind) {
    case "event":
      yield message.logged;
      return;
    case "output":
      yield { type: "output", ...message.piece };
      return;
    case "samples":
      for (const sample of message.samples) yield { type: "sample", atMs: message.atMs, ...sample };
      return;
  }
}

function exitCodeOf(view: RunView): ExitCode {
  if (view.outcome?.status === "succeeded") return EXIT.done;
  for (const task of view.tasks.values()) {
    if (task.failure?.fault === "host" || task.failure?.fault === "runner") return EXIT.host;
  }
  return EXIT.taskFailed;
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 10_000) {
    throw new RunnerError("usage", `--slots: "${text}" is not a whole number from 1 to 10000`);
  }
  return value;
}
