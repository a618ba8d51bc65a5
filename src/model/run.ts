import type { RunId } from "./ids.ts";

/** What one run was asked to do, apart from its tasks. Logged with `run-submitted`; holds no secret. */
export interface RunSettings {
  readonly runId: RunId;
  /** Absolute path of the user's repository (top level of its work tree). Only ever read. */
  readonly repository: string;
  readonly baseCommit: string;
  /**
   * HEAD of the user's repository, where `baseCommit` is another: a commit in bulkhead's own store that holds the work tree's uncommitted
   * changes on top of it. An apply of a patch is three-way against the user's HEAD, and refuses to touch a file with changes of its own.
   */
  readonly headCommit?: string;
  /** Branch name the base commit was taken from, or null for a detached HEAD. */
  readonly baseRef: string | null;
  /** Attempts at once. */
  readonly slots: number;
  /** Seeds the retry jitter, so that a replay decides the same. */
  readonly seed: number;
  readonly engine: string;
  readonly workspaceDriver: "auto" | "overlay" | "copy";
  /** Files the plan was read from, for people. */
  readonly sources: readonly string[];
  /** Whether the work tree differed from the base commit when the run began (its changes are not part of it). */
  readonly dirty: boolean;
}

/** What becomes of uncommitted changes when a run begins: left out, taken into every snapshot, or a reason not to begin. */
export const DIRTY_MODES = ["ignore", "include", "refuse"] as const;
export type DirtyMode = (typeof DIRTY_MODES)[number];

/** Limits on what is taken out of a workspace. */
export interface ResultLimits {
  readonly maxFiles: number;
  readonly maxTotalBytes: number;
  readonly maxFileBytes: number;
  readonly maxPathBytes: number;
  readonly maxDepth: number;
}

export const DEFAULT_RESULT_LIMITS: ResultLimits = {
  maxFiles: 100_000,
  maxTotalBytes: 2 * 1024 ** 3,
  maxFileBytes: 512 * 1024 ** 2,
  maxPathBytes: 4096,
  maxDepth: 256,
};
