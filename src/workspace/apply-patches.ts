/**
 * Takes an integrated change over into the user's repository, because a person said so: all or nothing, and so that it can be undone
 * (row A13). Only touched files are looked at and written, as the owner of the repository (row P5).
 *
 * Into the work tree: the change is merged onto the user's present HEAD in bulkhead's store, then `apply/switch-files.ts` puts the
 * files in place and stages them; nothing is committed. As a branch: the commits are brought in and a ref is made; the checkout is
 * left alone. Every refusal comes before anything was changed.
 */
import { join } from "node:path";
import type { RunId, TaskId } from "../model/ids.ts";
import { err, ok, type Result } from "../util/result.ts";
import type { ApplyRefusal } from "./apply/apply-refusal.ts";
import { readFilters } from "./apply/attribute-filters.ts";
import { openBeneath } from "./apply/beneath.ts";
import { createBranch } from "./apply/create-branch.ts";
import { type FileSwitch, findUnsafe, findUnsafeInChain, listSwitches } from "./apply/file-switch.ts";
import { fingerprints } from "./apply/fingerprint.ts";
import { lockIndex } from "./apply/index-lock.ts";
import {
  type Journal,
  type JournalFile,
  newApplyId,
  thisProcess,
  withLooks,
  writeJournal,
} from "./apply/journal.ts";
import { compareFiles, findStaged } from "./apply/look-at-files.ts";
import { mergeOnto } from "./apply/merge-onto.ts";
import { recoverApplies, recoverApply } from "./apply/recover-applies.ts";
import { removeStaging, scratchIndex, switchFiles } from "./apply/switch-files.ts";
import { transferObjects } from "./apply/transfer-objects.ts";
import {
  openUserRepository,
  readHeadCommit,
  stagingDirectory,
  type UserRepository,
} from "./apply/user-repository.ts";
import { gitText } from "./git.ts";
import { formatPath, pathOfKey } from "./path-bytes.ts";
import type { ObjectStore } from "./workspace.ts";

export { type ApplyRefusal, explainApplyRefusal } from "./apply/apply-refusal.ts";

export interface ApplyRequest {
  readonly store: Pick<ObjectStore, "gitDir" | "importCommit">;
  /** Any directory of the user's work tree. */
  readonly repository: string;
  /** From `integratePatches`. */
  readonly integrated: { readonly parent: string; readonly commit: string };
  /** Short name of a branch to make; null puts the change into the work tree. */
  readonly branch: string | null;
  /** Finds out whether it would be refused, changes nothing. */
  readonly dryRun: boolean;
  /** Where the records of applies are kept: in the state directory. */
  readonly journalDir: string;
  /** Whose patches they are, for the record. */
  readonly run?: { readonly runId: RunId; readonly taskIds: readonly TaskId[] };
  readonly onMoved?: (path: string) => void;
}

export interface Applied {
  /** `worktree`, or the full name of the branch. */
  readonly target: string;
  readonly headBefore: string | null;
  /** Tree of the merged change. */
  readonly tree: string;
  /** Paths that were changed, as in `FileChange.path`. */
  readonly files: readonly string[];
  /** What `undoApply` needs. */
  readonly undo: string;
}

/** Paths named in a refusal. */
const MAX_NAMED = 100;

/** Applies a change; a refusal names the files it is about. */
export async function applyPatches(request: ApplyRequest): Promise<Result<Applied, ApplyRefusal>> {
  const repository = await openUserRepository(request.repository);
  if (request.branch !== null) {
    const { gitDir } = request.store;
    const switches = await listSwitches(gitDir, request.integrated.parent, request.integrated.commit);
    const unsafe = await findUnsafeInChain(gitDir, request.integrated);
    if (unsafe.length > 0) return refuse("unsafe", unsafe);
    const made = await createBranch(repository, { ...request, branch: request.branch });
    if (!made.ok) return made;
    const files = switches.map(({ path }) => shown(path));
    return ok({ ...made.value, files, tree: await treeOf(gitDir, request.integrated.commit) });
  }
  const recovered = await recoverApplies(repository, request.journalDir);
  if (!recovered.ok) return recovered;
  return applyToWorkTree(repository, request);
}

async function applyToWorkTree(
  repository: UserRepository,
  request: ApplyRequest,
): Promise<Result<Applied, ApplyRefusal>> {
  const { store, integrated } = request;
  const head = await readHeadCommit(repository);
  if (head === null) return refuse("unborn", []);
  if (head.commit !== integrated.parent) await store.importCommit(repository.top, head.commit, 1);
  const merged = await mergeOnto(store.gitDir, {
    base: integrated.parent,
    ours: head.commit,
    theirs: integrated.commit,
  });
  if (!merged.ok) return refuse("conflict", merged.error);
  const switches = await listSwitches(store.gitDir, head.tree, merged.value);
  const unsafe = await findUnsafe(store.gitDir, switches);
  if (unsafe.length > 0) return refuse("unsafe", unsafe);
  if (switches.length === 0) return refuse("already-there", []);
  const filters = await readFilters(repository, switches);
  const files = switches.map((item) => ({
    ...item,
    filter: filters.get(item.path) ?? null,
    looks: { before: [], after: [] },
  }));
  const id = newApplyId();
  const applied: Applied = {
    target: "worktree",
    headBefore: head.commit,
    tree: merged.value,
    files: files.map(({ path }) => shown(path)),
    undo: `worktree:${id}`,
  };
  const journal: Journal = {
    version: 2,
    id,
    state: "preparing",
    repository: repository.top,
    headBefore: head.commit,
    tree: merged.value,
    run: request.run ? { ...request.run, taskIds: [...request.run.taskIds] } : null,
    isSettled: false,
    process: await thisProcess(),
    stagingDir: await stagingDirectory(repository, id),
    files,
  };
  if (request.dryRun) return (await findObstacle(repository, journal)) ?? ok(applied);
  const oids = files.flatMap(({ after }) => (after === null ? [] : [after.oid]));
  await transferObjects(store.gitDir, repository, { oids: [...new Set(oids)] });
  await writeJournal(request.journalDir, journal);
  const lock = await lockIndex(repository, id);
  if (lock === null) {
    await writeJournal(request.journalDir, { ...journal, state: "undone" });
    return refuse("index-locked", []);
  }
  let current: Journal = { ...journal, state: "undone" };
  try {
    // Under the lock, so that what is looked at is what gets changed.
    const obstacle = (await isStillAt(repository, head.commit))
      ? await findObstacle(repository, journal)
      : refuse("busy", []);
    if (obstacle !== null) return obstacle;
    const found = await withLooksNow(repository, files);
    await switchFiles(repository, {
      files: found,
      entries: found,
      side: "after",
      stagingDir: journal.stagingDir,
      lock,
      beforeFirstMove: async (looks) => {
        current = { ...journal, files: withLooks(found, "after", looks), state: "switching" };
        await writeJournal(request.journalDir, current);
      },
      ...(request.onMoved ? { onMoved: request.onMoved } : {}),
    });
    current = { ...current, state: "done" };
    return ok(applied);
  } finally {
    await lock.release();
    if (current.state === "undone") await removeStaging(repository, journal.stagingDir);
    // Failed half-way (a full disk, a directory that is not writable): back to where it was. Where that fails, too, the journal
    // stays at `switching`, and the next call tries again.
    if (current.state === "switching") await recoverApply(repository, request.journalDir, current);
    else await writeJournal(request.journalDir, current);
  }
}

/** What of the user's own is in the way, if anything. */
async function findObstacle(
  repository: UserRepository,
  journal: Journal,
): Promise<Result<never, ApplyRefusal> | null> {
  const { files } = journal;
  const staged = await findStaged(repository, files, ["before"]);
  const differences = await compareFiles(repository, files, "before", scratchIndex(journal.stagingDir));
  const dirty = new Set([...staged, ...differences.changed]);
  if (dirty.size > 0) return refuse("dirty", [...dirty]);
  return differences.extra.size > 0 ? refuse("untracked", [...differences.extra]) : null;
}

async function withLooksNow(
  repository: UserRepository,
  files: readonly JournalFile[],
): Promise<JournalFile[]> {
  const tree = await openBeneath(repository.top, repository.owner);
  try {
    const present = files.filter(({ before }) => before !== null).map(({ path }) => path);
    return withLooks(files, "before", await fingerprints(tree, present));
  } finally {
    await tree.close();
  }
}

async function isStillAt(repository: UserRepository, commit: string): Promise<boolean> {
  return (await readHeadCommit(repository))?.commit === commit;
}

function refuse(reason: ApplyRefusal["reason"], paths: readonly string[]): Result<never, ApplyRefusal> {
  return err({ reason, files: paths.slice(0, MAX_NAMED).map(shown) });
}

function shown(path: FileSwitch["path"]): string {
  return formatPath(pathOfKey(path));
}

function treeOf(gitDir: string, commit: string): Promise<string> {
  return gitText(gitDir, ["rev-parse", `${commit}^{tree}`]);
}

/** Where applies are recorded in a state directory. */
export function applyJournalDir(stateDir: string): string {
  return join(stateDir, "applies");
}
