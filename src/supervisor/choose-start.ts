/** Where a run starts from when the work tree has uncommitted changes. */
import type { DirtyMode } from "../model/run.ts";
import { RunnerError } from "../model/runner-error.ts";
import { sanitizeForTerminal } from "../util/sanitize-text.ts";
import { readUncommitted, type UncommittedFiles } from "../workspace/work-tree-changes.ts";
import type { RepositoryState } from "../workspace/workspace.ts";

export interface RunStart {
  /** HEAD, or a commit of bulkhead's own store with the uncommitted changes on top of it. */
  readonly baseCommit: string;
  /** Whether tracked files have changes that are not part of `baseCommit`. */
  readonly isDirty: boolean;
  readonly warnings: readonly string[];
}

const MAX_NAMED = 10;

/** Decides by what the caller or the configuration says, else by asking, else for HEAD. Throws `repository-refused` for `refuse`. */
export async function chooseStart(
  wish: {
    readonly dirty: DirtyMode | null | undefined;
    readonly askDirty?: (files: UncommittedFiles) => Promise<DirtyMode>;
  },
  repository: RepositoryState,
  cacheDir: string,
): Promise<RunStart> {
  const { path, headCommit } = repository;
  const head = { baseCommit: headCommit, isDirty: repository.dirty, warnings: [] };
  let mode = wish.dirty ?? "ignore";
  if (wish.dirty == null && wish.askDirty && repository.dirty) {
    mode = await wish.askDirty(await readUncommitted(path));
  }
  if (mode === "include") {
    // Loaded when it is used: most runs start from HEAD.
    const { openObjectStore } = await import("../workspace/object-store.ts");
    const store = await openObjectStore({ cacheDir, repository: path });
    const made = await store.commitWorkTree(path, headCommit);
    if (made === null) return { ...head, isDirty: false };
    return { baseCommit: made.commit, isDirty: false, warnings: made.warnings };
  }
  if (mode === "refuse") refuse(path, await readUncommitted(path));
  return head;
}

function refuse(path: string, { tracked, untracked }: UncommittedFiles): void {
  const files = [...tracked, ...untracked];
  if (files.length === 0) return;
  const shown = files.slice(0, MAX_NAMED).map((file) => sanitizeForTerminal(file));
  const more = files.length > shown.length ? ` and ${files.length - shown.length} more` : "";
  throw new RunnerError("repository-refused", `${path} has uncommitted changes: ${shown.join(", ")}${more}`, {
    data: { path, files: files.slice(0, MAX_NAMED), count: files.length, dirty: true },
    hint: "Commit or stash them, or start with --dirty include or --dirty ignore.",
  });
}
