import type { Failure } from "../../model/failure.ts";
import type { Patch } from "../../model/patch.ts";
import { err, type Result } from "../../util/result.ts";
import { createBaseTree } from "./base-tree.ts";
import type { ImportRequest } from "./change-source.ts";
import { commitChanges } from "./commit-changes.ts";
import { openFastImport } from "./fast-import.ts";
import { walkOverlay } from "./overlay-walk.ts";
import { createProblemList } from "./problem-list.ts";

export interface OverlayImportRequest extends ImportRequest {
  /** Upper directory of the attempt's overlay; its container is dead and its writable mount gone. */
  readonly upperDir: string;
  /** `upperDir` over the snapshot's layers, mounted ro,nosuid,nodev,noexec,nosymfollow. */
  readonly mergedDir: string;
}

/**
 * Reads what an attempt left in its overlay into a commit: one `git fast-import`, and one `git diff-tree` where something changed.
 * Nothing of the attempt's tree is given to git as a path.
 */
export async function importFromOverlay(request: OverlayImportRequest): Promise<Result<Patch, Failure>> {
  // Started before the walk: it is ready by the time something is asked of it.
  let session = openFastImport(request.gitDir);
  try {
    const problems = createProblemList();
    const base = createBaseTree(request.gitDir, request.snapshot.commit, session);
    const found = await walkOverlay({ ...request, layers: request.snapshot.layers }, base, problems);
    const bytes = found.changes.reduce((sum, change) => sum + (change.kind === "file" ? change.size : 0), 0);
    if (problems.isEmpty && !session.suits(bytes)) {
      await session.close();
      session = openFastImport(request.gitDir, bytes);
    }
    return problems.isEmpty
      ? await commitChanges(session, request, found, problems)
      : err(problems.failure());
  } finally {
    await session.close();
  }
}
