/**
 * bulkhead as a library:
 *
 *   import { runPlan } from "bulkhead";
 *
 *   const run = await runPlan({ plan: ["tasks/"] });
 *   for await (const event of run.events()) console.log(event.event.type);
 *   const result = await run.result;
 *
 * The command line is built on the same functions. Closing a handle leaves the run going: the supervisor is its own process.
 */

import { startRun } from "./cli/compose-run.ts";
import { cacheDirFrom, stateDirFrom } from "./cli/paths.ts";
import type { LoggedEvent, RunOutcome } from "./model/event.ts";
import type { TaskId } from "./model/ids.ts";
import type { RunPlanOptions } from "./supervisor/run-plan.ts";

export type { LoggedEvent, RunEvent, RunOutcome } from "./model/event.ts";
export type { Failure, Fault } from "./model/failure.ts";
export type { FileChange, Patch } from "./model/patch.ts";
export { RunnerError, type RunnerErrorCode } from "./model/runner-error.ts";
export type { Plan, TaskSpec } from "./model/task.ts";
export type { RunPlanOptions } from "./supervisor/run-plan.ts";

/** A run that goes on. */
export interface PlanRun {
  readonly runId: string;
  readonly warnings: readonly string[];
  /** Every event of the run from its first, in order; ends when the run has settled. May be iterated once. */
  events(): AsyncIterableIterator<LoggedEvent>;
  /** Settles when every task has ended and nothing of the run is left on the host. A failed task is an outcome, not a rejection. */
  readonly result: Promise<RunOutcome>;
  /** Cancels one task and what depends on it, or all. */
  cancel(taskId?: string): Promise<void>;
  /** Stops watching; the run goes on. */
  detach(): void;
}

/** Starts a run. Throws RunnerError before anything was started: `plan-invalid`, `engine-unreachable`, `preflight-failed`, … */
export async function runPlan(options: RunPlanOptions): Promise<PlanRun> {
  const env = { ...process.env, ...options.env };
  const context = { cwd: process.cwd(), env, stateDir: stateDirFrom(env), cacheDir: cacheDirFrom(env) };
  const started = await startRun(context, options);
  return {
    runId: started.runId,
    warnings: started.warnings,
    async *events() {
      for await (const message of started.messages()) if (message.kind === "event") yield message.logged;
    },
    result: started.outcome,
    cancel: (taskId) => started.cancel(taskId as TaskId | undefined),
    detach: () => started.detach(),
  };
}
