/**
 * What the subcommands need of the parts, as narrow functions: `compose.ts` alone builds the drivers behind them. Expected refusals
 * are thrown as RunnerError (`apply-refused`, `undo-refused`, …) with a hint.
 */
import type { SweptItem } from "../executor/executor.ts";
import type { RunId, TaskId } from "../model/ids.ts";
import type { RunSettings } from "../model/run.ts";
import type { TaskSpec } from "../model/task.ts";
import type { EventStore } from "../store/store.ts";
import type { Result } from "../util/result.ts";

/** A connection to the living supervisor of the state directory. */
export interface SupervisorClient {
  call(method: string, params: object): Promise<unknown>;
  close(): void;
}

/** The two commits of a patch: what it started from, and what came out. */
export interface CommitRange {
  readonly parent: string;
  readonly commit: string;
  /** Of patches put together: whose they are. */
  readonly taskIds?: readonly TaskId[];
}

export interface DiffOptions {
  readonly format: "patch" | "stat" | "names";
  readonly color: boolean;
  /** Paths, as patches name them, that come before all others. */
  readonly first?: readonly string[];
}

export interface IntegrationConflict {
  /** The task whose patch does not fit on what came before it. */
  readonly taskId: TaskId;
  readonly files: readonly string[];
}

/** Where the patches went, as it is logged with `patches-applied`. */
export interface AppliedPatches {
  /** `worktree`, or the full name of the branch that was made. */
  readonly target: string;
  readonly headBefore: string | null;
  readonly tree: string;
  /** What undoing needs, in the terms of the part that applied. */
  readonly undo: string;
}

/** What became of an apply or undo that was killed. */
export interface RecoveredApply {
  readonly runId: RunId;
  readonly taskIds: readonly TaskId[];
  readonly target: string;
  /** `completed`: the change was whole, and is in the log now. `taken-back`: it was half there. `undone`: the undo was whole. */
  readonly outcome: "completed" | "taken-back" | "undone";
}

export interface CommandDeps {
  openStore(readOnly: boolean): EventStore;
  connectSupervisor(): Promise<SupervisorClient | null>;
  /** Reads a plan for looking at; throws RunnerError `plan-invalid`. */
  loadPlan(path: string): Promise<readonly TaskSpec[]>;
  /** Bytes as git gives them: paths and content are hostile. */
  diffPatch(settings: RunSettings, range: CommitRange, options: DiffOptions): Promise<Buffer>;
  /** Puts the patches on top of the run's base commit one after the other, in bulkhead's own object store. Changes nothing of the user's. */
  integratePatches(
    settings: RunSettings,
    patches: ReadonlyArray<CommitRange & { readonly taskId: TaskId }>,
  ): Promise<Result<CommitRange, IntegrationConflict>>;
  /** Takes an integrated commit over, all or nothing: into the work tree, or as a new branch. */
  applyPatches(
    settings: RunSettings,
    integrated: CommitRange,
    options: { readonly branch: string | null; readonly dryRun: boolean },
  ): Promise<AppliedPatches>;
  /**
   * Brings what a killed `apply` or `undo` left in the run's repository to a whole state and logs it. `applyPatches` does so by itself
   * first.
   */
  recoverApplies(settings: RunSettings): Promise<readonly RecoveredApply[]>;
  undoApply(
    settings: RunSettings,
    applied: Pick<AppliedPatches, "target" | "headBefore" | "undo">,
  ): Promise<void>;
  /** Through the living supervisor where there is one. */
  gc(options: {
    readonly dryRun: boolean;
    readonly olderThanMs: number | null;
  }): Promise<readonly SweptItem[]>;
}
