import { readdir } from "node:fs/promises";
import type { RunId, TaskId } from "../model/ids.ts";
import { err, ok, type Result } from "../util/result.ts";
import type { ApplyRefusal } from "./apply/apply-refusal.ts";
import { isAtWork, listJournals, writeJournal } from "./apply/journal.ts";
import { recoverApplies } from "./apply/recover-applies.ts";
import { openUserRepository } from "./apply/user-repository.ts";

/** An apply whose process may have ended before the run's log was told. */
export interface UnsettledApply {
  readonly runId: RunId;
  readonly taskIds: readonly TaskId[];
  readonly target: "worktree";
  readonly headBefore: string;
  readonly tree: string;
  /** As `applyPatches` answered, or would have. */
  readonly undo: string;
  /** Whether the change is in the work tree. */
  readonly isApplied: boolean;
  /** Whether it was found half-way and has just been taken back. */
  readonly wasTakenBack: boolean;
}

/**
 * Brings what a killed apply or undo left in a work tree to a whole state, then lets `settle` compare what is there with the log. Does
 * nothing where there are no records; each is settled once.
 */
export async function settleApplies(
  request: { readonly repository: string; readonly journalDir: string },
  settle: (apply: UnsettledApply) => Promise<void>,
): Promise<Result<null, ApplyRefusal>> {
  const { journalDir } = request;
  const names = await readdir(journalDir).catch(() => []);
  if (names.length === 0) return ok(null);
  const repository = await openUserRepository(request.repository);
  const takenBack = await recoverApplies(repository, journalDir);
  if (!takenBack.ok) return err(takenBack.error);
  for (const journal of await listJournals(journalDir, repository.top)) {
    const { run, id, state } = journal;
    // One at work tells the log itself.
    if (journal.isSettled || (state !== "done" && state !== "undone") || (await isAtWork(journal))) continue;
    if (run !== null) {
      await settle({
        ...run,
        target: "worktree",
        headBefore: journal.headBefore,
        tree: journal.tree,
        undo: `worktree:${id}`,
        isApplied: state === "done",
        wasTakenBack: takenBack.value.has(id),
      });
    }
    await writeJournal(journalDir, { ...journal, isSettled: true });
  }
  return ok(null);
}
