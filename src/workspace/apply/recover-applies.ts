import { err, ok, type Result } from "../../util/result.ts";
import { formatPath, pathOfKey } from "../path-bytes.ts";
import type { ApplyRefusal } from "./apply-refusal.ts";
import { lockIndex, releaseIndexLock } from "./index-lock.ts";
import { findUnfinished, isAtWork, type Journal, withLooks, writeJournal } from "./journal.ts";
import { compareLooks, findStaged } from "./look-at-files.ts";
import { removeStaging, switchFiles } from "./switch-files.ts";
import type { UserRepository } from "./user-repository.ts";

/**
 * Brings applies and undos that were killed half-way to a whole state: back to where they came from, or on to the end where only
 * the last word was missing. Refused where the user changed a touched file meanwhile; nothing is overwritten then.
 * Gives the ids of applies that were taken back.
 */
export async function recoverApplies(
  repository: UserRepository,
  journalDir: string,
): Promise<Result<ReadonlySet<string>, ApplyRefusal>> {
  const takenBack = new Set<string>();
  for (const journal of await findUnfinished(journalDir, repository.top)) {
    if (await isAtWork(journal)) return err({ reason: "busy", files: [] });
    const recovered = await recoverApply(repository, journalDir, journal);
    if (!recovered.ok) return recovered;
    if (journal.state === "switching" && recovered.value === "undone") takenBack.add(journal.id);
  }
  return ok(takenBack);
}

/** Brings one interrupted apply or undo, whose process is gone or has given up, to a whole state, and says which. */
export async function recoverApply(
  repository: UserRepository,
  journalDir: string,
  journal: Journal,
): Promise<Result<"done" | "undone", ApplyRefusal>> {
  await releaseIndexLock(repository, journal.id);
  await removeStaging(repository, journal.stagingDir);
  if (journal.state === "preparing") {
    await writeJournal(journalDir, { ...journal, state: "undone" });
    return ok("undone");
  }
  const [from, to] =
    journal.state === "switching" ? (["before", "after"] as const) : (["after", "before"] as const);
  const isArrived = { before: "undone", after: "done" } as const;
  const fromFrom = await compareLooks(repository, journal.files, from);
  const fromTo = await compareLooks(repository, journal.files, to);
  const differsFrom = new Set([...fromFrom.changed, ...fromFrom.extra]);
  const differsTo = new Set([...fromTo.changed, ...fromTo.extra]);
  // All arrived and the index with them: only the note of it was missing.
  if (differsTo.size === 0 && (await findStaged(repository, journal.files, [to])).size === 0) {
    await writeJournal(journalDir, { ...journal, state: isArrived[to] });
    return ok(isArrived[to]);
  }
  const lost = journal.files.filter(({ path }) => differsFrom.has(path) && differsTo.has(path));
  const staged = await findStaged(repository, journal.files, ["before", "after"]);
  const refused = [...lost.map(({ path }) => path), ...staged];
  if (refused.length > 0) {
    return err({
      reason: "interrupted",
      files: [...new Set(refused)].map((path) => formatPath(pathOfKey(path))),
    });
  }
  const lock = await lockIndex(repository, journal.id);
  if (lock === null) return err({ reason: "index-locked", files: [] });
  let current = journal;
  try {
    await switchFiles(repository, {
      files: journal.files.filter(({ path }) => differsFrom.has(path)),
      entries: journal.files,
      side: from,
      stagingDir: journal.stagingDir,
      lock,
      beforeFirstMove: async (looks) => {
        current = { ...journal, files: withLooks(journal.files, from, looks) };
        await writeJournal(journalDir, current);
      },
    });
  } finally {
    await lock.release();
  }
  await writeJournal(journalDir, { ...current, state: isArrived[from] });
  return ok(isArrived[from]);
}
