import type { ReviewEvent } from "../model/event.ts";
import type { RunId } from "../model/ids.ts";
import { RunnerError } from "../model/runner-error.ts";
import type { CommandDeps } from "./command-deps.ts";

/** Logs what a person did: through the living supervisor, which alone writes while it lives, else straight into the store. */
export async function recordEvent(
  deps: Pick<CommandDeps, "openStore" | "connectSupervisor">,
  runId: RunId,
  event: ReviewEvent,
): Promise<void> {
  const client = await deps.connectSupervisor();
  if (client !== null) {
    try {
      await client.call("record", { run_id: runId, event });
      return;
    } catch (error) {
      // It was on its way out when we came, and is gone: then nobody else writes.
      if (!(error instanceof RunnerError && error.code === "supervisor-unreachable")) throw error;
    } finally {
      client.close();
    }
  }
  const store = deps.openStore(false);
  try {
    store.append(runId, [event]);
  } finally {
    store.close();
  }
}
