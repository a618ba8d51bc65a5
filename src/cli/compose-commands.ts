import { RunnerError } from "../model/runner-error.ts";
import { loadConfig } from "../plan/load-config.ts";
import { openEventStore } from "../store/sqlite/sqlite-event-store.ts";
import { findSupervisor } from "../supervisor/reach-supervisor.ts";
import { databasePath } from "../util/state-layout.ts";
import type { CommandDeps } from "./command-deps.ts";
import type { CliContext } from "./context.ts";

void loadConfig;
const no = () => {
  throw new RunnerError("internal", "not wired");
};
export function composeCommands(context: CliContext): CommandDeps {
  return {
    openStore: (readOnly) =>
      openEventStore(
        databasePath(context.stateDir),
        readOnly ? { readOnly: true, readOnlyIfMissing: "empty" } : {},
      ),
    connectSupervisor: () => findSupervisor(context.stateDir),
    loadPlan: no,
    diffPatch: no,
    integratePatches: no,
    applyPatches: no,
    undoApply: no,
    gc: no,
  };
}
