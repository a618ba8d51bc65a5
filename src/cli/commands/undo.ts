import type { Command } from "commander";
import { RunnerError } from "../../model/runner-error.ts";
import { sanitizeForTerminal } from "../../util/sanitize-text.ts";
import type { CommandDeps } from "../command-deps.ts";
import type { CliContext } from "../context.ts";
import { findRun, readRun, settingsOf } from "../find-run.ts";
import { recordEvent } from "../record-event.ts";
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
      const store = deps.openStore(true);
      const view = (() => {
        try {
          return readRun(store, findRun(store, run));
        } finally {
          store.close();
        }
      })();
      const last = view.applied.findLast((applied) => !applied.undone);
      if (last === undefined) {
        throw new RunnerError("undo-refused", `nothing of run ${view.runId ?? ""} is applied`, {
          hint: "`bulkhead status --all` lists runs; name the one that was applied",
        });
      }
      const settings = settingsOf(view);
      await deps.undoApply(settings, last);
      await recordEvent(deps, settings.runId, { type: "apply-undone", target: last.target });
      const text = flags.json
        ? `${JSON.stringify({ version: 1, run_id: settings.runId, target: last.target, task_ids: last.taskIds })}\n`
        : `took back ${last.taskIds.join(", ")} from ${sanitizeForTerminal(last.target)}\n`;
      await writeOut(context.stdout, text);
    });
}
