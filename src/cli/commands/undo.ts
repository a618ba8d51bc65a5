import type { Command } from "commander";
import type { TaskId } from "../../model/ids.ts";
import { RunnerError } from "../../model/runner-error.ts";
import type { RunView } from "../../observe/run-view.ts";
import type { CommandDeps } from "../command-deps.ts";
import type { CliContext } from "../context.ts";
import { findRun, readRun, settingsOf } from "../find-run.ts";
import { recordEvent } from "../record-event.ts";
import { describeTarget } from "../render/task-words.ts";
import { writeOut } from "../write-out.ts";

/** `bulkhead undo`: takes the last `apply` of a run back. */
export function registerUndo(program: Command, context: CliContext, deps: CommandDeps): void {
  program
    .command("undo")
    .description("Take the last apply of a run back")
    .argument("[RUN]", "run id, its beginning or end, or `latest`; the newest run where it is left out")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      "\nRefused where a file was changed since it was applied: your own work is never lost.\n\nExamples:\n  bulkhead undo\n  bulkhead undo 3f9a2c",
    )
    .action(async (run: string | undefined, flags: { json?: boolean }) => {
      const settings = settingsOf(readView(deps, run));
      const print = (target: string, taskIds: readonly TaskId[]): Promise<boolean> =>
        writeOut(
          context.stdout,
          flags.json
            ? `${JSON.stringify({ version: 1, run_id: settings.runId, target, task_ids: taskIds })}\n`
            : `took back ${taskIds.join(", ")} from ${describeTarget(target)}\n`,
        );
      // An apply of this run that was killed half-way is the last one: with it taken back, what was asked for is done.
      const recovered = await deps.recoverApplies(settings);
      const back = recovered.find(
        ({ runId, outcome }) => runId === settings.runId && outcome !== "completed",
      );
      if (back !== undefined) {
        await print(back.target, back.taskIds);
        return;
      }
      const view = readView(deps, settings.runId);
      const last = view.applied.findLast((applied) => !applied.undone);
      if (last === undefined) {
        throw new RunnerError("undo-refused", `nothing of run ${view.runId ?? ""} is applied`, {
          hint: "`bulkhead status --all` lists runs; name the one that was applied",
        });
      }
      await deps.undoApply(settings, last);
      await recordEvent(deps, settings.runId, { type: "apply-undone", target: last.target });
      await print(last.target, last.taskIds);
    });
}

function readView(deps: CommandDeps, run: string | undefined): RunView {
  const store = deps.openStore(true);
  try {
    return readRun(store, findRun(store, run));
  } finally {
    store.close();
  }
}
