import type { Command } from "commander";
import type { RunView } from "../../observe/run-view.ts";
import { type RunViewJson, toJson } from "../../observe/run-view-json.ts";
import type { CommandDeps } from "../command-deps.ts";
import type { CliContext } from "../context.ts";
import { findRun, readRun } from "../find-run.ts";
import { parseCount } from "../options.ts";
import { choosePalette } from "../render/palette.ts";
import { renderRunList, renderStatus } from "../render/status.ts";
import { terminalColumns } from "../terminal.ts";
import { writeOut } from "../write-out.ts";

interface StatusFlags {
  readonly all?: boolean;
  readonly limit: number;
  readonly json?: boolean;
}

/** `bulkhead status`: how one run stands, or a list of runs. */
export function registerStatus(program: Command, context: CliContext, deps: CommandDeps): void {
  program
    .command("status")
    .description("Show how a run stands, task by task, or list the runs")
    .argument("[RUN]", "run id, its beginning or end, or `latest`; the newest run where it is left out")
    .option("-a, --all", "list runs, newest first")
    .option("-n, --limit <N>", "how many runs to list", parseCount, 20)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  bulkhead status\n  bulkhead status 3f9a2c\n  bulkhead status --all -n 50\n  bulkhead status --json | jq '.tasks[] | select(.state == \"failed\")'",
    )
    .action(async (run: string | undefined, flags: StatusFlags) => {
      const store = deps.openStore(true);
      try {
        const driven = await activeRuns(deps);
        const options = {
          palette: choosePalette(context.env, context.stdout.isTTY === true),
          columns: terminalColumns(context.stdout),
          nowMs: Date.now(),
        };
        if (flags.all === true) {
          const views = store
            .runs()
            .slice(0, flags.limit)
            .map((runId) => readRun(store, runId));
          const text = flags.json
            ? `${JSON.stringify({ version: 1, runs: views.map((view) => ({ ...withDriven(view, driven), tasks: undefined })) }, null, 2)}\n`
            : renderRunList(views, { ...options, isDriven: (runId) => driven.has(runId) });
          await writeOut(context.stdout, text);
          return;
        }
        const view = readRun(store, findRun(store, run));
        const text = flags.json
          ? `${JSON.stringify(withDriven(view, driven), null, 2)}\n`
          : renderStatus(view, { ...options, isDriven: driven.has(view.runId ?? "") });
        await writeOut(context.stdout, text);
      } finally {
        store.close();
      }
    });
}

/** A run that is `running` and not `driven` lost its supervisor: its end will not come by itself. */
function withDriven(view: RunView, driven: ReadonlySet<string>): RunViewJson & { readonly driven: boolean } {
  return { ...toJson(view), driven: driven.has(view.runId ?? "") };
}

/** Runs that a living supervisor drives. */
async function activeRuns(deps: CommandDeps): Promise<ReadonlySet<string>> {
  const client = await deps.connectSupervisor();
  if (client === null) return new Set();
  try {
    const answer = await client.call("runs", {});
    const active = typeof answer === "object" && answer !== null && "active" in answer ? answer.active : [];
    return new Set(Array.isArray(active) ? active.map(String) : []);
  } finally {
    client.close();
  }
}
