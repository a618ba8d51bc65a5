/**
 * A run as people see it: the fold of its log (rows A9, A13, A22). Everything shown about a run, on the command line and the web,
 * comes from here. The view is changed in place; each event costs O(1), except the first, which costs O(tasks).
 */
import type { CapReport, ResourceUse } from "../model/caps.ts";
import type { LoggedEvent, RunEvent, RunOutcome } from "../model/event.ts";
import type { Failure } from "../model/failure.ts";
import type { RunId, TaskId } from "../model/ids.ts";
import type { Patch } from "../model/patch.ts";
import type { RunSettings } from "../model/run.ts";
import type { TaskSpec } from "../model/task.ts";

export const TASK_STATES = [
  "waiting",
  "running",
  "retrying",
  "succeeded",
  "failed",
  "held",
  "cancelled",
] as const;
/** `retrying` waits for its next attempt to fall due; `held` will never start, because something it needs failed. */
export type TaskState = (typeof TASK_STATES)[number];

export interface TaskView {
  readonly spec: TaskSpec;
  state: TaskState;
  /** The newest attempt; 0 before the first. */
  attempt: number;
  /** Of the first attempt, and the moment the task came to its end. */
  startedMs: number | null;
  endedMs: number | null;
  /** Of the newest attempt. */
  attemptStartedMs: number | null;
  retryDueMs: number | null;
  heldBecause: TaskId | null;
  /** Tasks that are held because of this one. */
  readonly holds: TaskId[];
  /** Why the newest attempt that failed did; stays visible while retrying. */
  failure: Failure | null;
  patch: Patch | null;
  patchSummary: PatchSummary | null;
  caps: readonly CapReport[];
  use: ResourceUse | null;
  mainMs: number | null;
  agent: { readonly name: string; readonly version: string | null } | null;
  status: { readonly state: string; readonly message: string | null; readonly percent: number | null } | null;
  lastError: { readonly message: string; readonly fatal: boolean } | null;
  driver: "overlay" | "copy" | null;
  containerId: string | null;
  readonly artifacts: Array<{ readonly name: string; readonly bytes: number }>;
  stopOrdered: "timeout" | "cancelled" | null;
}

export interface PatchSummary {
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
  readonly binaries: number;
}

export interface AppliedView {
  readonly taskIds: readonly TaskId[];
  readonly target: string;
  readonly undo: string;
  readonly headBefore: string | null;
  readonly atMs: number;
  undone: boolean;
}

export interface RunView {
  runId: RunId | null;
  settings: RunSettings | null;
  outcome: RunOutcome | null;
  startedMs: number | null;
  endedMs: number | null;
  /** Of the newest event. */
  lastMs: number | null;
  lastSeq: number;
  slots: number | null;
  cancelRequested: boolean;
  /** In the order of the plan. */
  readonly tasks: Map<TaskId, TaskView>;
  readonly counts: Record<TaskState, number>;
  attemptsStarted: number;
  /** How long finished attempts took, for the median. */
  readonly attemptMs: number[];
  readonly applied: AppliedView[];
  /** The newest ones; `warningCount` counts all. */
  readonly warnings: Array<{ readonly taskId: TaskId | null; readonly message: string }>;
  warningCount: number;
}

const MAX_WARNINGS = 100;
const MAX_ARTIFACTS = 100;

/** An empty view: feed it the events of one run in order. */
export function createRunView(): RunView {
  return {
    runId: null,
    settings: null,
    outcome: null,
    startedMs: null,
    endedMs: null,
    lastMs: null,
    lastSeq: 0,
    slots: null,
    cancelRequested: false,
    tasks: new Map(),
    counts: { waiting: 0, running: 0, retrying: 0, succeeded: 0, failed: 0, held: 0, cancelled: 0 },
    attemptsStarted: 0,
    attemptMs: [],
    applied: [],
    warnings: [],
    warningCount: 0,
  };
}

/** Folds one event in. Events that say nothing for people pass by. */
export function applyEvent(view: RunView, logged: LoggedEvent): void {
  view.runId ??= logged.runId;
  view.lastMs = logged.atMs;
  view.lastSeq = logged.seq;
  const { event, atMs } = logged;
  switch (event.type) {
    case "run-submitted":
      view.settings = event.settings;
      view.slots = event.settings.slots;
      view.startedMs = atMs;
      for (const spec of event.tasks) addTask(view, spec);
      return;
    case "task-added":
      addTask(view, event.task);
      return;
    case "slots-changed":
      view.slots = event.slots;
      return;
    case "cancel-requested":
      if (event.taskId === null) view.cancelRequested = true;
      return;
    case "run-finished":
      view.outcome = event.outcome;
      view.endedMs = atMs;
      return;
    case "patches-applied":
      view.applied.push({
        taskIds: event.taskIds,
        target: event.target,
        undo: event.undo,
        headBefore: event.headBefore,
        atMs,
        undone: false,
      });
      return;
    case "apply-undone": {
      const last = view.applied.findLast((applied) => applied.target === event.target && !applied.undone);
      if (last !== undefined) last.undone = true;
      return;
    }
    case "warning-raised":
      view.warningCount += 1;
      view.warnings.push({ taskId: event.taskId, message: event.message });
      if (view.warnings.length > MAX_WARNINGS) view.warnings.shift();
      return;
    default:
      if ("taskId" in event) applyTaskEvent(view, event, atMs);
  }
}

type TaskEvent = Exclude<
  Extract<RunEvent, { readonly taskId: unknown }>,
  { readonly type: "cancel-requested" | "warning-raised" }
>;

function applyTaskEvent(view: RunView, event: TaskEvent, atMs: number): void {
  const task = view.tasks.get(event.taskId);
  if (task === undefined) return;
  switch (event.type) {
    case "attempt-started":
      setState(view, task, "running");
      task.attempt = event.attempt;
      task.startedMs ??= atMs;
      task.attemptStartedMs = atMs;
      task.retryDueMs = null;
      task.stopOrdered = null;
      task.status = null;
      task.lastError = null;
      task.containerId = null;
      task.caps = [];
      view.attemptsStarted += 1;
      return;
    case "attempt-stop-ordered":
      task.stopOrdered = event.because;
      return;
    case "attempt-ended":
      task.use = event.use;
      task.mainMs = event.mainMs;
      if (task.attemptStartedMs !== null) view.attemptMs.push(atMs - task.attemptStartedMs);
      if (event.outcome.status === "failed") task.failure = event.outcome.failure;
      return;
    case "retry-scheduled":
      setState(view, task, "retrying");
      task.failure = event.failure;
      task.retryDueMs = event.dueMs;
      return;
    case "task-succeeded":
      finish(view, task, "succeeded", atMs);
      task.failure = null;
      task.patch = event.patch;
      task.patchSummary = summarizePatch(event.patch);
      return;
    case "task-failed":
      finish(view, task, "failed", atMs);
      task.failure = event.failure;
      return;
    case "task-cancelled":
      finish(view, task, "cancelled", atMs);
      return;
    case "task-held":
      finish(view, task, "held", atMs);
      task.heldBecause = event.because;
      view.tasks.get(event.because)?.holds.push(event.taskId);
      return;
    case "snapshot-prepared":
      task.driver = event.driver;
      return;
    case "sandbox-started":
      task.containerId = event.containerId;
      task.caps = event.caps;
      return;
    case "agent-registered":
      task.agent = { name: event.name, version: event.version };
      return;
    case "status-reported":
      task.status = { state: event.state, message: event.message, percent: event.percent };
      return;
    case "agent-error-reported":
      task.lastError = { message: event.message, fatal: event.fatal };
      return;
    case "artifact-stored":
      if (task.artifacts.length < MAX_ARTIFACTS) {
        task.artifacts.push({ name: event.name, bytes: event.bytes });
      }
      return;
    default:
      // `bus-called`, `log-reported` and what later versions add: in the log, not in the view.
      return;
  }
}

function addTask(view: RunView, spec: TaskSpec): void {
  if (view.tasks.has(spec.id)) return;
  view.tasks.set(spec.id, {
    spec,
    state: "waiting",
    attempt: 0,
    startedMs: null,
    endedMs: null,
    attemptStartedMs: null,
    retryDueMs: null,
    heldBecause: null,
    holds: [],
    failure: null,
    patch: null,
    patchSummary: null,
    caps: [],
    use: null,
    mainMs: null,
    agent: null,
    status: null,
    lastError: null,
    driver: null,
    containerId: null,
    artifacts: [],
    stopOrdered: null,
  });
  view.counts.waiting += 1;
}

function setState(view: RunView, task: TaskView, state: TaskState): void {
  view.counts[task.state] -= 1;
  view.counts[state] += 1;
  task.state = state;
}

function finish(view: RunView, task: TaskView, state: TaskState, atMs: number): void {
  setState(view, task, state);
  task.endedMs = atMs;
  task.retryDueMs = null;
}

function summarizePatch(patch: Patch): PatchSummary {
  let insertions = 0;
  let deletions = 0;
  let binaries = 0;
  for (const file of patch.files) {
    insertions += file.insertions ?? 0;
    deletions += file.deletions ?? 0;
    if (file.insertions === null && file.kind !== "deleted") binaries += 1;
  }
  return { files: patch.files.length, insertions, deletions, binaries };
}
