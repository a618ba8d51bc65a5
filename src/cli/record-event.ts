import type { ReviewEvent } from "../model/event.ts";
import type { RunId } from "../model/ids.ts";
import type { CommandDeps } from "./command-deps.ts";

/** Logs what a person did: through the living supervisor, which alone writes while it lives, else straight into the store. */
export async function recordEvent(deps: CommandDeps, runId: RunId, event: ReviewEvent): Promise<void> {
  const client = await deps.connectSupervisor();
  if (client !== null) {
    try {
      await client.call("record", { run_id: runId, event });
    } finally {
      client.close();
    }
    return;
  }
  const store = deps.openStore(false);
  try {
    store.append(runId, [event]);
  } finally {
    store.close();
  }
}
