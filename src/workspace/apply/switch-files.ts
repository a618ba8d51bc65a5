/**
 * Brings touched files of the user's work tree, and their index entries, to one side of an apply.
 *
 * Theory of operation: git writes all new content into a staging directory first (`checkout-index --prefix`: its filters, line ends
 * and modes apply, the work tree is not touched). Only then are files moved into place, each by one rename, so that a process killed
 * at any point leaves every file whole, and the journal says which side each belongs to. The index comes last, also by a rename.
 */
import { join } from "node:path";
import { RunnerError } from "../../model/runner-error.ts";
import { pathOfKey } from "../path-bytes.ts";
import { type Beneath, openBeneath } from "./beneath.ts";
import { type FileSwitch, indexInfo, type Side } from "./file-switch.ts";
import type { IndexLock } from "./index-lock.ts";
import type { UserRepository } from "./user-repository.ts";

export interface SwitchRequest {
  /** Files to be moved. */
  readonly files: readonly FileSwitch[];
  /** Index entries to be set; all touched paths, also those whose file is right already. */
  readonly entries: readonly FileSwitch[];
  readonly side: Side;
  readonly stagingDir: string;
  readonly lock: IndexLock;
  /** Told once all is staged, before the first file is touched; it MUST have reached the disk when it returns. */
  readonly beforeFirstMove: () => Promise<void>;
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
  const content = join(stagingDir, "tree");
  await stageContent(repository, files, side, content, join(stagingDir, "content.index"));
  await prepareIndex(repository, request, newIndex);
  await request.beforeFirstMove();
  const tree = await openBeneath(repository.top, repository.owner);
  try {
    // Removals first: a file that becomes a directory makes room for it, and the other way round.
    for (const { path } of files.filter((item) => item[side] === null)) {
      await tree.remove(pathOfKey(path));
      request.onMoved?.(path);
    }
    const puts = files.filter((item) => item[side] !== null);
    if (puts.length > 0) await movePuts(tree, repository, puts, content, request.onMoved);
  } finally {
    await tree.close();
  }
  // Fills in the time stamps of the files that are in place now; the exit code only says that others differ, too.
  await repository.git(["update-index", "-q", "--refresh"], { indexFile: newIndex });
  await request.lock.commit(newIndex);
  await removeStaging(repository, stagingDir);
}

/** Removes what an apply had put aside. */
export async function removeStaging(repository: UserRepository, stagingDir: string): Promise<void> {
  await repository.run("rm", ["-rf", "--one-file-system", "--", stagingDir]);
}

async function movePuts(
  tree: Beneath,
  repository: UserRepository,
  puts: readonly FileSwitch[],
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

async function stageContent(
  repository: UserRepository,
  files: readonly FileSwitch[],
  side: Side,
  directory: string,
  scratchIndex: string,
): Promise<void> {
  const puts = files.filter((item) => item[side] !== null);
  if (puts.length === 0) return;
  const options = { indexFile: scratchIndex };
  await repository.gitBytes(["update-index", "-z", "--index-info"], {
    ...options,
    input: indexInfo(puts, side),
  });
  await repository.gitBytes(["checkout-index", "--all", "--quiet", `--prefix=${directory}/`], options);
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
  await repository.gitBytes(["update-index", "-z", "--index-info"], { indexFile: newIndex, input });
}
