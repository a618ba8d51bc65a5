import type { RunSettings } from "../model/run.ts";
import { RunnerError } from "../model/runner-error.ts";
import type { CommandDeps, RecoveredApply } from "./command-deps.ts";
import { readRun } from "./find-run.ts";
import { recordEvent } from "./record-event.ts";

/**
 * Finishes what a killed `apply` or `undo` left in a run's repository, and makes the logs of the runs say what is there. Throws
 * RunnerError `undo-refused` where files were changed since.
 */
export async function settleApplies(
  deps: Pick<CommandDeps, "openStore" | "connectSupervisor">,
  settings: RunSettings,
  stateDir: string,
): Promise<readonly RecoveredApply[]> {
  const workspace = await import("../workspace/settle-applies.ts");
  const { applyJournalDir, explainApplyRefusal } = await import("../workspace/apply-patches.ts");
  const journalDir = applyJournalDir(stateDir);
  const recovered: RecoveredApply[] = [];
  const settled = await workspace.settleApplies(
    { repository: settings.repository, journalDir },
    async ({ runId, taskIds, target, headBefore, tree, undo, isApplied, wasTakenBack }) => {
      const store = deps.openStore(true);
      const view = (() => {
        try {
          return readRun(store, runId);
        } finally {
          store.close();
        }
      })();
      if (view.settings === null) return; // Its log is in another state directory, or gone.
      const logged = view.applied.find((applied) => applied.undo === undo);
      const found = { runId, taskIds, target };
      if (isApplied && logged === undefined) {
        await recordEvent(deps, runId, { type: "patches-applied", taskIds, target, headBefore, tree, undo });
        recovered.push({ ...found, outcome: "completed" });
      } else if (!isApplied && logged?.undone === false) {
        await recordEvent(deps, runId, { type: "apply-undone", target });
        recovered.push({ ...found, outcome: "undone" });
      } else if (wasTakenBack) recovered.push({ ...found, outcome: "taken-back" });
    },
  );
  if (settled.ok) return recovered;
  const { message, hint } = explainApplyRefusal(settled.error);
  throw new RunnerError("undo-refused", message, { data: { ...settled.error }, hint });
}
