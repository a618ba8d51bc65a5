/**
 * Brings touched files of the user's work tree, and their index entries, to one side of an apply.
 *
 * Theory of operation: git writes all new content into a staging directory first (`checkout-index --prefix`: line ends and modes
 * apply, the work tree is not touched). It reads attributes from the new index and not from the work tree, whose own may be of the
 * other side; each path goes through no filter but the one that was looked up for it beforehand. Only then are files moved into place, each by one rename, so that a process killed
 * at any point leaves every file whole, and the journal says which side each belongs to. The index comes last, also by a rename.
 */
import { join } from "node:path";
import { RunnerError } from "../../model/runner-error.ts";
import { pathOfKey } from "../path-bytes.ts";
import { byFilter, nulEnded } from "./attribute-filters.ts";
import { type Beneath, openBeneath } from "./beneath.ts";
import { indexInfo, type Side } from "./file-switch.ts";
import { fingerprints } from "./fingerprint.ts";
import type { IndexLock } from "./index-lock.ts";
import type { JournalFile } from "./journal.ts";
import type { UserRepository } from "./user-repository.ts";

const MAX_NAMED_PATHS = 500;

export interface SwitchRequest {
  /** Files to be moved. */
  readonly files: readonly JournalFile[];
  /** Index entries to be set; all touched paths, also those whose file is right already. */
  readonly entries: readonly JournalFile[];
  readonly side: Side;
  readonly stagingDir: string;
  readonly lock: IndexLock;
  /** Told what the files look like once all is staged, before the first is touched; it MUST have reached the disk when it returns. */
  readonly beforeFirstMove: (looks: ReadonlyMap<string, string>) => Promise<void>;
  /** Told after each file. */
  readonly onMoved?: (path: string) => void;
}

/** Does the switch. Throws where something fails half-way: the journal then says how to go on. */
export async function switchFiles(repository: UserRepository, request: SwitchRequest): Promise<void> {
  const { files, side, stagingDir } = request;
  const made = await repository.run("mkdir", ["-m", "0700", "--", stagingDir]);
  if (made.exitCode !== 0)
    throw new RunnerError(
      "workspace-failed",
      `the staging directory could not be made: ${made.stderr.trim()}`,
    );
  const newIndex = join(stagingDir, "index");
  const puts = files.filter((item) => item[side] !== null);
  await prepareIndex(repository, request, newIndex);
  const content = await stageContent(repository, puts, { stagingDir, newIndex });
  await request.beforeFirstMove(await looksOf(repository, content, puts));
  const tree = await openBeneath(repository.top, repository.owner);
  try {
    // Removals first: a file that becomes a directory makes room for it, and the other way round.
    for (const { path } of files.filter((item) => item[side] === null)) {
      await tree.remove(pathOfKey(path));
      request.onMoved?.(path);
    }
    if (puts.length > 0) await movePuts(tree, repository, puts, content, request.onMoved);
  } finally {
    await tree.close();
  }
  await refreshEntries(repository, puts, newIndex);
  await request.lock.commit(newIndex);
  await removeStaging(repository, stagingDir);
}

/** Removes what an apply had put aside, and the scratch index beside it. */
export async function removeStaging(repository: UserRepository, stagingDir: string): Promise<void> {
  const index = scratchIndex(stagingDir);
  await repository.run("rm", ["-rf", "--one-file-system", "--", stagingDir, index, `${index}.lock`]);
}

/** Index for comparing, of one apply. */
export function scratchIndex(stagingDir: string): string {
  return `${stagingDir}.index`;
}

/**
 * Fills in the time stamps of the files that are in place now. They are named one by one, which costs paths times entries; beyond some
 * number git looks at the whole work tree faster. The exit codes only say that something differs.
 */
async function refreshEntries(
  repository: UserRepository,
  puts: readonly JournalFile[],
  indexFile: string,
): Promise<void> {
  if (puts.length > MAX_NAMED_PATHS) {
    await repository.git(["update-index", "-q", "--refresh"], { indexFile, filter: null });
    return;
  }
  for (const [filter, some] of byFilter(puts)) {
    const input = nulEnded(some.map(({ path }) => path));
    const args = ["add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul"];
    await repository.git(args, { indexFile, filter, input });
  }
}

async function movePuts(
  tree: Beneath,
  repository: UserRepository,
  puts: readonly JournalFile[],
  content: string,
  onMoved: SwitchRequest["onMoved"],
): Promise<void> {
  const staged = await openBeneath(content, repository.owner);
  try {
    for (const { path } of puts) {
      await tree.moveIn(staged, pathOfKey(path));
      onMoved?.(path);
    }
  } finally {
    await staged.close();
  }
}

/** Lets git write the files; returns the directory they are in. */
async function stageContent(
  repository: UserRepository,
  puts: readonly JournalFile[],
  staging: { readonly stagingDir: string; readonly newIndex: string },
): Promise<string> {
  const [content, workTree] = [join(staging.stagingDir, "tree"), join(staging.stagingDir, "empty")];
  await repository.run("mkdir", ["--", content, workTree]);
  const args = ["checkout-index", "--quiet", "-z", "--stdin", `--prefix=${content}/`];
  for (const [filter, some] of byFilter(puts)) {
    const input = nulEnded(some.map(({ path }) => path));
    await repository.gitBytes(args, { indexFile: staging.newIndex, workTree, filter, input });
  }
  return content;
}

async function looksOf(
  repository: UserRepository,
  content: string,
  puts: readonly JournalFile[],
): Promise<ReadonlyMap<string, string>> {
  const staged = await openBeneath(content, repository.owner);
  try {
    return await fingerprints(
      staged,
      puts.map(({ path }) => path),
    );
  } finally {
    await staged.close();
  }
}

async function prepareIndex(
  repository: UserRepository,
  request: SwitchRequest,
  newIndex: string,
): Promise<void> {
  // Copied by the owner's hand: what lies at the index's place may be anything they can read, and no more.
  const copied = await repository.run("cp", ["-p", "--", repository.indexPath, newIndex]);
  if (copied.exitCode !== 0)
    throw new RunnerError("workspace-failed", `the index could not be copied: ${copied.stderr.trim()}`);
  const input = indexInfo(request.entries, request.side);
  // Writing an index makes git look again at files that are as young as it: a conversion, too.
  await repository.gitBytes(["update-index", "-z", "--index-info"], {
    indexFile: newIndex,
    filter: null,
    input,
  });
}
