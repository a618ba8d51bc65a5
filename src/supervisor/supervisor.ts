/**
 * Theory of operation. One process per state directory (`lock.ts`). It owns the event log and all runs; command lines are clients
 * of its socket. It is started by the first command that needs it and ends by itself a moment after the last run has settled and
 * the last client has gone, so it costs nothing when nothing happens.
 */
import { randomBytes } from "node:crypto";
import type { DoorConnection } from "../door/door.ts";
import type { Executor, SweptItem } from "../executor/executor.ts";
import type { RunEvent } from "../model/event.ts";
import { formatRunId, type RunId, type TaskId } from "../model/ids.ts";
import { RunnerError } from "../model/runner-error.ts";
import type { TaskSpec } from "../model/task.ts";
import { redactBytes } from "../observe/redact.ts";
import { CONFIGURED_RULE } from "../policy/secret-shapes.ts";
import type { EventStore } from "../store/store.ts";
import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import { type RunController, type RunSubmission, startRun } from "./run-controller.ts";
import { type WatchWants, watchRun } from "./watch-run.ts";

export interface SupervisorDeps {
  readonly stateDir: string;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
  /** One executor per engine endpoint, made on first use. */
  executorFor(endpoint: string): Promise<Executor>;
}

export interface Supervisor {
  submit(
    submission: Omit<RunSubmission, "settings"> & { settings: Omit<RunSubmission["settings"], "runId"> },
  ): Promise<RunId>;
  /** Throws RunnerError `run-not-found` where no such run is active here. */
  cancel(runId: RunId, taskId: TaskId | null, by: string): void;
  watch(runId: RunId, wants: WatchWants, connection: DoorConnection): Promise<void>;
  activeRuns(): readonly RunId[];
  run(runId: string): RunController | null;
  sweep(endpoint: string, dryRun: boolean, olderThanMs: number | null): Promise<readonly SweptItem[]>;
  record(runId: RunId, event: RunEvent): void;
  /** Secrets of every run so far, for what is not said of one run. */
  secrets(): readonly string[];
  /** Settles when no run is active. */
  quiet(): Promise<void>;
}

/** Settled runs kept in memory, so that a client that comes a little late still sees the end pushed to it. */
const SETTLED_RUNS_KEPT = 20;

export function createSupervisor(deps: SupervisorDeps): Supervisor {
  const active = new Map<string, RunController>();
  const recent = new Map<string, RunController>();
  const settling = new Set<Promise<unknown>>();
  let secrets: readonly string[] = [];

  return {
    async submit(submission) {
      refuseSecretsInPlan(submission.tasks, submission.secrets);
      if (submission.secrets.some((secret) => !secrets.includes(secret))) {
        secrets = [...new Set([...secrets, ...submission.secrets])];
      }
      const executor = await deps.executorFor(submission.settings.engine);
      const runId = formatRunId(new Date(deps.clock.nowMs()).toISOString(), randomBytes(3).toString("hex"));
      const settings = { ...submission.settings, runId };
      const run = startRun({ ...deps, executor }, { ...submission, settings });
      active.set(runId, run);
      const settled = run.settled
        .catch((error: unknown) =>
          deps.logger.error({ runId, error: String(error) }, "run ended by a fault of bulkhead"),
        )
        .finally(() => {
          active.delete(runId);
          recent.set(runId, run);
          const oldest = recent.keys().next().value;
          if (recent.size > SETTLED_RUNS_KEPT && oldest !== undefined) recent.delete(oldest);
          settling.delete(settled);
        });
      settling.add(settled);
      return runId;
    },
    cancel(runId, taskId, by) {
      const run = active.get(runId);
      if (!run) throw notActive(runId);
      if (taskId !== null && !run.task(taskId)) {
        throw new RunnerError("task-not-found", `run ${runId} has no task "${taskId}"`);
      }
      run.cancel(taskId, by);
    },
    async watch(runId, wants, connection) {
      const run = active.get(runId) ?? recent.get(runId);
      if (!run) throw notActive(runId);
      await watchRun(deps.store, run, connection, wants);
    },
    activeRuns: () => [...active.values()].map((run) => run.settings.runId),
    run: (runId) => active.get(runId) ?? null,
    async sweep(endpoint, dryRun, olderThanMs) {
      const executor = await deps.executorFor(endpoint);
      return executor.sweep({ activeRuns: active, dryRun, olderThanMs });
    },
    record: (runId, event) => {
      deps.store.append(runId, [event]);
    },
    secrets: () => secrets,
    async quiet() {
      while (settling.size > 0) await Promise.all(settling);
    },
  };
}

function notActive(runId: string): RunnerError {
  return new RunnerError("run-not-found", `run ${runId} is not running`, {
    hint: "see `bulkhead status` for all runs",
  });
}

/** A plan is logged as it is and becomes environment and arguments of containers: what must stay secret cannot be part of it. */
function refuseSecretsInPlan(tasks: readonly TaskSpec[], secrets: readonly string[]): void {
  const holds = (value: unknown): boolean =>
    redactBytes(secrets, Buffer.from(JSON.stringify(value), "utf8")).rules.includes(CONFIGURED_RULE);
  if (secrets.length === 0 || !holds(tasks)) return;
  const task = tasks.find(holds);
  throw new RunnerError("plan-invalid", `task ${task?.id ?? ""} holds the value of a configured secret`, {
    data: { task: task?.id },
    hint: "take it out of the plan: it would be in the log, and in the container's environment or arguments",
  });
}
