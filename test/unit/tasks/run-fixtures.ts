import type { AttemptOutcome, Decision, Fact } from "../../../src/model/event.ts";
import type { Failure } from "../../../src/model/failure.ts";
import { runIdSchema, type TaskId, taskIdSchema } from "../../../src/model/ids.ts";
import type { RunSettings } from "../../../src/model/run.ts";
import type { RetryPolicy, TaskSpec } from "../../../src/model/task.ts";

export const RUN_ID = runIdSchema.parse("20261130-142501-3f9a2c");

export const NO_RETRIES: RetryPolicy = {
  max: 0,
  baseMs: 1000,
  factor: 2,
  maxDelayMs: 60_000,
  jitter: 0,
  on: [],
};

export const id = (name: string): TaskId => taskIdSchema.parse(name);

export function task(
  name: string,
  dependsOn: readonly string[] = [],
  change: Partial<TaskSpec> = {},
): TaskSpec {
  return {
    id: id(name),
    title: name,
    command: { argv: ["true"], stdin: null, agent: null },
    prompt: null,
    priority: 100,
    dependsOn: dependsOn.map(id),
    timeoutMs: 1_000_000,
    retries: NO_RETRIES,
    caps: {
      cpus: 1,
      memoryBytes: 2 ** 30,
      swapBytes: 0,
      pids: 100,
      openFiles: 1024,
      diskBytes: null,
      tmpBytes: 2 ** 20,
      ioReadBytesPerSecond: null,
      ioWriteBytesPerSecond: null,
      ioReadOpsPerSecond: null,
      ioWriteOpsPerSecond: null,
    },
    capsMode: "report",
    env: {},
    files: { include: [], exclude: [], tests: "all", keywords: [], history: 1, extra: [] },
    context: { files: [], acceptance: [], prohibited: [], notes: null },
    protect: [],
    runtime: null,
    verify: [],
    image: "bulkhead",
    source: "plan.yaml",
    ...change,
  };
}

export function submitted(tasks: readonly TaskSpec[], slots = 2): Extract<Fact, { type: "run-submitted" }> {
  const settings: RunSettings = {
    runId: RUN_ID,
    repository: "/repo",
    baseCommit: "0".repeat(40),
    baseRef: "main",
    slots,
    seed: 7,
    engine: "unix:///engine.sock",
    workspaceDriver: "auto",
    sources: [],
    dirty: false,
  };
  return { type: "run-submitted", settings, tasks };
}

/** The commit that `succeeded` submits. */
export function commitOf(name: string, attempt = 1): string {
  return `${name}@${attempt}`;
}

export function succeeded(name: string, attempt = 1): Extract<Fact, { type: "attempt-ended" }> {
  return ended(name, attempt, {
    status: "submitted",
    patch: {
      attempt: { runId: RUN_ID, taskId: id(name), attempt },
      commit: commitOf(name, attempt),
      parent: "0".repeat(40),
      tree: "1".repeat(40),
      files: [],
      ignored: { files: 0, bytes: 0 },
      empty: false,
    },
  });
}

export const EXIT_1: Failure = { reason: "exit", fault: "agent", exitCode: 1 };
export const ENGINE_LOST: Failure = { reason: "engine-lost", fault: "host", phase: "wait", message: "gone" };

export function failed(
  name: string,
  attempt = 1,
  failure: Failure = EXIT_1,
): Extract<Fact, { type: "attempt-ended" }> {
  return ended(name, attempt, { status: "failed", failure });
}

function ended(
  name: string,
  attempt: number,
  outcome: AttemptOutcome,
): Extract<Fact, { type: "attempt-ended" }> {
  return { type: "attempt-ended", taskId: id(name), attempt, outcome, use: null, mainMs: 1 };
}

export function cancel(name: string | null): Fact {
  return { type: "cancel-requested", taskId: name === null ? null : id(name), by: "operator" };
}

/** Decisions in one line each: `start a#1`, `retry a#1 +1000`, `held b<a`, `finished failed 1/1/0/1`. */
export function brief(decisions: readonly Decision[]): string[] {
  return decisions.map((one) => {
    switch (one.type) {
      case "attempt-started":
        return `start ${one.taskId}#${one.attempt}`;
      case "attempt-stop-ordered":
        return `stop ${one.taskId}#${one.attempt} ${one.because}`;
      case "retry-scheduled":
        return `retry ${one.taskId}#${one.attempt} +${one.delayMs}`;
      case "task-succeeded":
        return `succeeded ${one.taskId}`;
      case "task-failed":
        return `failed ${one.taskId} ${one.failure.reason}`;
      case "task-cancelled":
        return `cancelled ${one.taskId}`;
      case "task-held":
        return `held ${one.taskId}<${one.because}`;
      case "run-finished": {
        const { status, succeeded, failed, cancelled, held } = one.outcome;
        return `finished ${status} ${succeeded}/${failed}/${cancelled}/${held}`;
      }
    }
    throw new Error("unknown decision");
  });
}
