/**
 * Makes a commit of what the person has not committed yet, in bulkhead's own store (`bulkhead run --dirty include`).
 *
 * Theory of operation: git itself reads the files, in the person's repository and by their attributes and `core.autocrlf`, so that a text
 * file is stored with the line ends that `git add` would give it. But it writes elsewhere: the index is a copy, new objects go to a
 * directory of ours with theirs as alternate. Filter drivers are off, one by one; a file that names one keeps its committed version
 * and is told of, since its bytes in the work tree are not what the repository would hold. Hooks and fsmonitor are off as everywhere. What
 * was made then comes into the store as a pack, through fsck. The commit's id depends on its content alone.
 *
 * LIMITATION: files are read one after the other while the person may go on working; a set that never was together on disk can come
 * out, as with `git add`. LIMITATION: changes inside a submodule stay out. LIMITATION: under sudo the ignore file of the other user's home
 * is not known.
 */
import { copyFile, lstat, mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { RunnerError } from "../model/runner-error.ts";
import { gitFailed, gitText, spawnGit } from "./git.ts";
import { inRepository, onePath, personalEnvironment } from "./in-repository.ts";
import { commitTree } from "./inside-repository.ts";
import { splitNul } from "./list-tree.ts";
import { joinPath, pathOfKey, quotePath, showPath } from "./path-bytes.ts";
import { ENVIRONMENT_FOR_FILES } from "./person-files.ts";
import { removeTree } from "./remove-tree.ts";
import { changeOptions, readWorkTreeChanges, type WorkTreeChanges } from "./work-tree-changes.ts";
import type { WorkTreeCommit } from "./workspace.ts";

const MAX_FILES = 100_000;
const MAX_TOTAL_BYTES = 2 * 1024 ** 3;
const MAX_NAMED = 10;
/** What a note says of such a commit, before the id of the commit below it. */
const NOTE = "on ";

/** A git in the person's repository whose index and new objects are ours. */
interface Scratch {
  readonly top: string;
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** See `ObjectStore.commitWorkTree`. The store has `headCommit` already. */
export async function commitWorkTree(
  gitDir: string,
  repository: string,
  headCommit: string,
): Promise<WorkTreeCommit | null> {
  const top = await onePath(repository, ["rev-parse", "--show-toplevel"]);
  const options = await changeOptions(top);
  const changes = await readWorkTreeChanges(top, options);
  await check(top, changes);
  const directory = await mkdtemp(join(gitDir, "work-tree-"));
  try {
    const scratch = await prepare(top, options, directory, headCommit);
    const { taken, filtered } = await chooseFiles(scratch, changes);
    const tree = await writeTree(scratch, changes.deleted, taken, headCommit.length);
    const warnings = describeLeftOut(filtered, changes.repositories);
    if (tree === (await gitText(gitDir, ["rev-parse", `${headCommit}^{tree}`]))) {
      return warnings.length === 0 ? null : { commit: headCommit, warnings };
    }
    await transfer(scratch, gitDir, tree, headCommit);
    const commit = await commitTree(gitDir, {
      tree,
      parents: [headCommit],
      message: "Uncommitted changes of the work tree\n",
      dateFrom: headCommit,
    });
    await gitText(gitDir, ["update-ref", `refs/bulkhead/base/${commit}`, commit]);
    await writeFile(join(gitDir, "bulkhead", commit), `${NOTE}${headCommit}`);
    return { commit, warnings };
  } finally {
    await removeTree(directory);
  }
}

/** The commit below one that `commitWorkTree` made; null of any other. */
export async function readBelow(gitDir: string, commit: string): Promise<string | null> {
  const note = await readFile(join(gitDir, "bulkhead", commit), "utf8").catch(() => "");
  return note.startsWith(NOTE) ? note.slice(NOTE.length) : null;
}

async function check(top: string, changes: WorkTreeChanges): Promise<void> {
  const { unmerged, changed, untracked } = changes;
  if (unmerged.length > 0) {
    throw new RunnerError("repository-refused", `${top} is in the middle of a merge: ${named(unmerged)}`, {
      data: { path: top, files: unmerged.slice(0, MAX_NAMED) },
      hint: "Finish the merge first, or start from the last commit with --dirty ignore.",
    });
  }
  const paths = [...changed, ...untracked];
  let bytes = 0;
  for (const path of paths.slice(0, MAX_FILES)) {
    // One that is gone by now counts nothing; git finds out too.
    bytes += (await lstat(joinPath(Buffer.from(top), pathOfKey(path))).catch(() => null))?.size ?? 0;
  }
  if (paths.length <= MAX_FILES && bytes <= MAX_TOTAL_BYTES) return;
  throw new RunnerError(
    "repository-refused",
    `the uncommitted changes of ${top} are too much to include: ${paths.length} files, ${bytes} bytes; the limits are ${MAX_FILES} and ${MAX_TOTAL_BYTES}`,
    {
      data: { path: top, files: paths.length, bytes },
      hint: "Name what is not source in .gitignore, or use --dirty ignore.",
    },
  );
}

async function prepare(
  top: string,
  options: readonly string[],
  directory: string,
  head: string,
): Promise<Scratch> {
  const index = join(directory, "index");
  const objects = join(directory, "objects");
  await mkdir(objects);
  const [theirIndex, theirObjects] = await Promise.all(
    ["index", "objects"].map((name) =>
      onePath(top, ["rev-parse", "--path-format=absolute", "--git-path", name]),
    ),
  );
  const env = {
    ...ENVIRONMENT_FOR_FILES,
    GIT_INDEX_FILE: index,
    GIT_OBJECT_DIRECTORY: objects,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: quotePath(Buffer.from(theirObjects ?? "")),
  };
  const scratch = { top, options, env };
  // A repository can have no index at all; to git that is an empty one.
  const isCopied = await copyFile(theirIndex ?? "", index).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
  if (!isCopied) await git(scratch, ["read-tree", head]);
  return scratch;
}

/** Of the changed files, those that no filter driver has a say in. */
async function chooseFiles(
  scratch: Scratch,
  changes: WorkTreeChanges,
): Promise<{ taken: string[]; filtered: string[] }> {
  const paths = [...changes.changed, ...changes.untracked];
  if (paths.length === 0) return { taken: [], filtered: [] };
  const output = splitNul(await git(scratch, ["check-attr", "-z", "--stdin", "filter"], pathList(paths)));
  const filtered: string[] = [];
  for (let at = 0; at + 2 < output.length; at += 3) {
    if (!/^(?:unspecified|unset|set)$/.test(output[at + 2] ?? "")) filtered.push(output[at] ?? "");
  }
  const left = new Set(filtered);
  return { taken: paths.filter((path) => !left.has(path)), filtered };
}

async function writeTree(
  scratch: Scratch,
  deleted: readonly string[],
  taken: readonly string[],
  idLength: number,
): Promise<string> {
  if (deleted.length > 0) {
    const zero = "0".repeat(idLength);
    const gone = Buffer.from(deleted.map((path) => `0 ${zero}\t${path}\0`).join(""), "latin1");
    await git(scratch, ["update-index", "-z", "--index-info"], gone);
  }
  if (taken.length > 0) {
    const args = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
    await git(scratch, args, pathList(taken));
  }
  return (await git(scratch, ["write-tree"])).toString("latin1").trim();
}

/** Brings what is in `tree` and not in HEAD into the store. */
async function transfer(scratch: Scratch, gitDir: string, tree: string, head: string): Promise<void> {
  const packArgs = ["pack-objects", "--revs", "--stdout", "--quiet", "--window=0"];
  const indexArgs = ["index-pack", "--strict", "--stdin"];
  const pack = spawnGit(null, ["-C", scratch.top, ...packArgs], {
    environment: personalEnvironment(),
    env: scratch.env,
  });
  const index = spawnGit(gitDir, indexArgs);
  const errors = { pack: "", index: "" };
  pack.stderr.on("data", (chunk: Buffer) => {
    errors.pack += chunk.toString("utf8");
  });
  index.stderr.on("data", (chunk: Buffer) => {
    errors.index += chunk.toString("utf8");
  });
  index.stdout.resume();
  pack.stdin.end(`${tree}\n^${head}\n`);
  // A reader that ended early says why by its exit code.
  await pipeline(pack.stdout, index.stdin).catch(() => undefined);
  const [packExit, indexExit] = await Promise.all([pack.ended, index.ended]);
  if (packExit !== 0) throw gitFailed(packArgs, { exitCode: packExit, stderr: errors.pack }, scratch.top);
  if (indexExit !== 0) throw gitFailed(indexArgs, { exitCode: indexExit, stderr: errors.index }, gitDir);
}

async function git(scratch: Scratch, args: readonly string[], input?: Buffer): Promise<Buffer> {
  const output = await inRepository(scratch.top, [...scratch.options, ...args], {
    env: scratch.env,
    ...(input ? { input } : {}),
  });
  if (output.exitCode !== 0) throw gitFailed(args, output, scratch.top);
  return output.stdout;
}

function describeLeftOut(filtered: readonly string[], repositories: readonly string[]): string[] {
  const warnings: string[] = [];
  if (filtered.length > 0) {
    warnings.push(
      `uncommitted changes of ${named(filtered)} stay out: a filter driver (such as LFS) stores them, and none is run`,
    );
  }
  if (repositories.length > 0) {
    warnings.push(`untracked repositories stay out: ${named(repositories)}`);
  }
  return warnings;
}

function named(paths: readonly string[]): string {
  const shown = paths.slice(0, MAX_NAMED).map((path) => showPath(pathOfKey(path)));
  const more = paths.length > shown.length ? ` and ${paths.length - shown.length} more` : "";
  return `${shown.join(", ")}${more}`;
}

function pathList(paths: readonly string[]): Buffer {
  return Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1");
}
