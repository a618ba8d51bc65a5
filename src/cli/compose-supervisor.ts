/** Builds a supervisor and serves it until nothing is left to do. */
import { writeSync } from "node:fs";
import { pino } from "pino";
import { openDoor } from "../door/unix-door.ts";
import type { Executor } from "../executor/executor.ts";
import { redactText } from "../observe/redact.ts";
import { openEventStore } from "../store/sqlite/sqlite-event-store.ts";
import { createBusPort } from "../supervisor/bus-port.ts";
import { takeSupervisorLock } from "../supervisor/lock.ts";
import { readStateId, serve } from "../supervisor/serve.ts";
import { createSupervisor, type Supervisor } from "../supervisor/supervisor.ts";
import { databasePath } from "../util/state-layout.ts";
import { composeExecutor } from "./compose-executor.ts";
import type { CliContext } from "./context.ts";
import { packageVersion } from "./version.ts";

/** Long enough for the next command of a script to find the supervisor still there. */
const IDLE_MS = 1_500;
const NO_SECRETS: readonly string[] = [];

/** Runs the supervisor of the context's state directory; returns at once where another one lives. */
export async function superviseState(context: CliContext): Promise<void> {
  const { stateDir, cacheDir } = context;
  const reach: { supervisor: Supervisor | null } = { supervisor: null };
  // A line may quote what a container said, or a message of the engine that does.
  const write = (line: string): void => {
    writeSync(2, redactText(reach.supervisor?.secrets() ?? NO_SECRETS, line));
  };
  const logger = pino({ base: { pid: process.pid } }, { write });
  const lock = takeSupervisorLock(stateDir);
  if (!lock) {
    logger.info({ stateDir }, "another supervisor lives; leaving");
    return;
  }
  const clock = { nowMs: Date.now };
  const stateId = readStateId(stateDir);
  const version = packageVersion();
  const store = openEventStore(databasePath(stateDir), { nowMs: clock.nowMs });
  const executors = new Map<string, Promise<Executor>>();
  const busPort = createBusPort({ stateDir, store, run: (runId) => reach.supervisor?.run(runId) ?? null });
  const executorFor = (endpoint: string): Promise<Executor> => {
    const known = executors.get(endpoint);
    if (known !== undefined) return known;
    const made = composeExecutor({
      stateDir,
      cacheDir,
      stateId,
      endpoint,
      busPort,
      clock,
      logger,
    });
    executors.set(endpoint, made);
    made.catch(() => executors.delete(endpoint));
    return made;
  };
  const supervisor = createSupervisor({ stateDir, store, clock, logger, version, executorFor });
  reach.supervisor = supervisor;
  logger.info({ stateDir, version }, "supervisor started");
  try {
    await serve({ stateDir, stateId, version, supervisor, store, openDoor, logger, idleMs: IDLE_MS });
    for (const executor of await Promise.all(executors.values())) await executor.close();
  } finally {
    store.close();
    lock.release();
  }
  logger.info({}, "supervisor ended");
}
