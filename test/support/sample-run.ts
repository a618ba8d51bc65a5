import type { LoggedEvent, RunEvent } from "../../src/model/event.ts";
import type { Failure } from "../../src/model/failure.ts";
import { type RunId, runIdSchema, type TaskId, taskIdSchema } from "../../src/model/ids.ts";
import type { FileChange, Patch } from "../../src/model/patch.ts";
import type { TaskSpec } from "../../src/model/task.ts";
import { applyEvent, createRunView, type RunView } from "../../src/observe/run-view.ts";

export const RUN: RunId = runIdSchema.parse("20261130-142501-3f9a2c");
export const START_MS = Date.UTC(2026, 10, 30, 14, 25, 1);
export const id = (text: string): TaskId => taskIdSchema.parse(text);

/** A valid task with all defaults. */
export function sampleTask(taskId: string, extra: Partial<TaskSpec> = {}): TaskSpec {
  return {
    id: id(taskId),
    title: taskId,
    command: { argv: ["true"], stdin: null, agent: null },
    prompt: null,
    priority: 10,
    dependsOn: [],
    timeoutMs: 600_000,
    retries: { max: 2, baseMs: 1000, factor: 1.5, maxDelayMs: 60_000, jitter: 0.2, on: [] },
    caps: {
      cpus: 1,
      memoryBytes: 512 * 1024 ** 2,
      swapBytes: 0,
      pids: 256,
      openFiles: 1024,
      diskBytes: null,
      tmpBytes: 64 * 1024 ** 2,
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
    image: "sample:base",
    source: "plan.yaml",
    ...extra,
  };
}

/** A patch with these files; `[path, insertions, deletions]`. */
export function samplePatch(
  taskId: string,
  files: ReadonlyArray<readonly [string, number | null, number | null]>,
): Patch {
  const changes = files.map(
    ([path, insertions, deletions]): FileChange => ({
      path,
      kind: "modified",
      mode: "100644",
      insertions,
      deletions,
    }),
  );
  return {
    attempt: { runId: RUN, taskId: id(taskId), attempt: 1 },
    commit: "c".repeat(40),
    parent: "b".repeat(40),
    tree: "e".repeat(40),
    files: changes,
    ignored: { files: 0, bytes: 0 },
    empty: changes.length === 0,
  };
}

export const OOM: Failure = {
  reason: "oom",
  fault: "agent",
  victim: "main",
  limitBytes: 512 * 1024 ** 2,
  peakBytes: 512 * 1024 ** 2,
  exitCode: 137,
};

/** Numbers events and stamps them; `atMs` counts from the start of the run. */
export function log(...events: ReadonlyArray<readonly [atMs: number, event: RunEvent]>): LoggedEvent[] {
  return events.map(([atMs, event], index) => ({ seq: index + 1, runId: RUN, atMs: START_MS + atMs, event }));
}

export function submitted(tasks: readonly TaskSpec[]): RunEvent {
  return {
    type: "run-submitted",
    settings: {
      runId: RUN,
      repository: "/home/ada/shop",
      baseCommit: "a".repeat(40),
      baseRef: "main",
      slots: 4,
      seed: 1,
      engine: "unix:///run/docker.sock",
      workspaceDriver: "auto",
      sources: ["plan.yaml"],
      dirty: false,
    },
    tasks,
  };
}

export const started = (taskId: string, attempt = 1): RunEvent => ({
  type: "attempt-started",
  taskId: id(taskId),
  attempt,
  parents: [],
});

export const ended = (taskId: string, attempt: number, outcome: Patch | Failure): RunEvent => ({
  type: "attempt-ended",
  taskId: id(taskId),
  attempt,
  outcome:
    "commit" in outcome ? { status: "submitted", patch: outcome } : { status: "failed", failure: outcome },
  use: null,
  mainMs: null,
});

export const succeeded = (taskId: string, patch: Patch, attempt = 1): RunEvent => ({
  type: "task-succeeded",
  taskId: id(taskId),
  attempt,
  patch,
});

/**
 * A run in which `auth` changes files, `images` changes nothing, `memory` fails for lack of memory after a retry, and what needs
 * `memory` is held.
 */
export function mixedRun(): LoggedEvent[] {
  const auth = samplePatch("auth", [
    ["src/auth.ts", 40, 2],
    ["logo.png", null, null],
  ]);
  return log(
    [
      0,
      submitted([
        sampleTask("auth", { title: "Refactor the login" }),
        sampleTask("memory"),
        sampleTask("images"),
        sampleTask("docs", { dependsOn: [id("memory")] }),
        sampleTask("release", { dependsOn: [id("docs"), id("auth")] }),
      ]),
    ],
    [100, started("auth")],
    [100, started("memory")],
    [200, started("images")],
    [4_200, ended("images", 1, samplePatch("images", []))],
    [4_200, succeeded("images", samplePatch("images", []))],
    [5_000, ended("memory", 1, OOM)],
    [
      5_000,
      {
        type: "retry-scheduled",
        taskId: id("memory"),
        attempt: 1,
        delayMs: 1500,
        dueMs: START_MS + 6500,
        failure: OOM,
      },
    ],
    [6_500, started("memory", 2)],
    [8_500, ended("memory", 2, OOM)],
    [8_500, { type: "task-failed", taskId: id("memory"), attempt: 2, failure: OOM }],
    [8_500, { type: "task-held", taskId: id("docs"), because: id("memory") }],
    [8_500, { type: "task-held", taskId: id("release"), because: id("memory") }],
    [72_400, ended("auth", 1, auth)],
    [72_400, succeeded("auth", auth)],
    [
      72_400,
      { type: "warning-raised", taskId: id("auth"), message: "caps: \u001b[31mtmp\u001b[0m is not enforced" },
    ],
    [
      72_500,
      { type: "run-finished", outcome: { status: "failed", succeeded: 2, failed: 1, cancelled: 0, held: 2 } },
    ],
  );
}

/** Folds events up to `untilMs` from the start. */
export function fold(events: readonly LoggedEvent[], untilMs = Number.POSITIVE_INFINITY): RunView {
  const view = createRunView();
  for (const event of events) if (event.atMs <= START_MS + untilMs) applyEvent(view, event);
  return view;
}
