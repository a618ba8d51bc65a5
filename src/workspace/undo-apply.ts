import { err, ok, type Result } from "../util/result.ts";
import type { ApplyRefusal } from "./apply/apply-refusal.ts";
import { removeBranch } from "./apply/create-branch.ts";
import { lockIndex } from "./apply/index-lock.ts";
import { type Journal, readJournal, thisProcess, withLooks, writeJournal } from "./apply/journal.ts";
import { compareLooks, findStaged } from "./apply/look-at-files.ts";
import { recoverApplies, recoverApply } from "./apply/recover-applies.ts";
import { removeStaging, switchFiles } from "./apply/switch-files.ts";
import { openUserRepository, stagingDirectory, type UserRepository } from "./apply/user-repository.ts";
import { formatPath, pathOfKey } from "./path-bytes.ts";

export interface UndoRequest {
  readonly repository: string;
  /** As `applyPatches` answered. */
  readonly target: string;
  readonly undo: string;
  readonly journalDir: string;
  readonly onMoved?: (path: string) => void;
}

/**
 * Takes an apply back: the touched files get the content they had before, in the work tree and the index; a branch is removed. Refused
 * where one of them was changed since, so that nobody's work is lost. Also takes back an apply that was interrupted, and is then done.
 */
export async function undoApply(request: UndoRequest): Promise<Result<null, ApplyRefusal>> {
  const repository = await openUserRepository(request.repository);
  const [kind, id = ""] = request.undo.split(":");
  if (kind === "branch") return removeBranch(repository, request.target, id);
  const recovered = await recoverApplies(repository, request.journalDir);
  if (!recovered.ok) return recovered;
  const journal = await readJournal(request.journalDir, id);
  if (journal === null || journal.repository !== repository.top)
    return err({ reason: "not-found", files: [] });
  if (journal.state === "undone") return ok(null);
  return takeBack(repository, request, journal);
}

async function takeBack(
  repository: UserRepository,
  request: UndoRequest,
  done: Journal,
): Promise<Result<null, ApplyRefusal>> {
  const stagingDir = await stagingDirectory(repository, done.id);
  const journal: Journal = { ...done, isSettled: false, stagingDir, process: await thisProcess() };
  const lock = await lockIndex(repository, journal.id);
  if (lock === null) return err({ reason: "index-locked", files: [] });
  let current = journal;
  try {
    // An index that a `git reset` has put back already is no obstacle: the work tree is what could be lost.
    const staged = await findStaged(repository, journal.files, ["after", "before"]);
    const { changed, extra } = await compareLooks(repository, journal.files, "after");
    const obstacles = new Set([...staged, ...changed, ...extra]);
    if (obstacles.size > 0) {
      return err({ reason: "changed", files: [...obstacles].map((path) => formatPath(pathOfKey(path))) });
    }
    await switchFiles(repository, {
      files: journal.files,
      entries: journal.files,
      side: "before",
      stagingDir,
      lock,
      beforeFirstMove: async (looks) => {
        current = { ...journal, files: withLooks(journal.files, "before", looks), state: "undoing" };
        await writeJournal(request.journalDir, current);
      },
      ...(request.onMoved ? { onMoved: request.onMoved } : {}),
    });
    current = { ...current, state: "undone" };
    return ok(null);
  } finally {
    await lock.release();
    if (current.state === "done") await removeStaging(repository, stagingDir);
    if (current.state === "undoing") await recoverApply(repository, request.journalDir, current);
    else await writeJournal(request.journalDir, current);
  }
}
