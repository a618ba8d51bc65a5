import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import type { CommandDeps } from "../command-deps.ts";
import type { CliContext } from "../context.ts";
import { findRun, readRun } from "../find-run.ts";
import { GRAPH_FORMATS, type GraphFormat, type GraphNode, renderGraph } from "../render/graph.ts";
import { choosePalette } from "../render/palette.ts";
import { terminalColumns } from "../terminal.ts";
import { writeOut } from "../write-out.ts";

/** `bulkhead graph`: the DAG of a run, with how its tasks stand, or of a plan that was never run. */
export function registerGraph(program: Command, context: CliContext, deps: CommandDeps): void {
  program
    .command("graph")
    .description("Draw the task graph of a run or of a plan")
    .argument(
      "[RUN_OR_PLAN]",
      "run id, or path of a plan file or task folder; the newest run where it is left out",
    )
    .addOption(new Option("--format <FORMAT>", "how to draw it").choices([...GRAPH_FORMATS]).default("text"))
    .option("--json", "the same as --format json")
    .addHelpText(
      "after",
      "\nExamples:\n  bulkhead graph\n  bulkhead graph tasks/\n  bulkhead graph plan.yaml --format dot | dot -Tsvg > plan.svg\n  bulkhead graph latest --format mermaid",
    )
    .action(async (subject: string | undefined, flags: { format: GraphFormat; json?: boolean }) => {
      const nodes =
        subject !== undefined && existsSync(resolve(context.cwd, subject))
          ? await planNodes(deps, subject)
          : runNodes(deps, subject);
      const text = renderGraph(nodes, {
        format: flags.json === true ? "json" : flags.format,
        palette: choosePalette(context.env, context.stdout.isTTY === true),
        columns: terminalColumns(context.stdout),
      });
      await writeOut(context.stdout, text);
    });
}

async function planNodes(deps: CommandDeps, path: string): Promise<GraphNode[]> {
  return (await deps.loadPlan(path)).map((task) => ({
    id: task.id,
    title: task.title,
    dependsOn: task.dependsOn,
    priority: task.priority,
    state: null,
  }));
}

function runNodes(deps: CommandDeps, run: string | undefined): GraphNode[] {
  const store = deps.openStore(true);
  try {
    const view = readRun(store, findRun(store, run));
    return [...view.tasks.values()].map(({ spec, state }) => ({
      id: spec.id,
      title: spec.title,
      dependsOn: spec.dependsOn,
      priority: spec.priority,
      state,
    }));
  } finally {
    store.close();
  }
}
