/** Compares touched paths of the user's work tree and index with the versions an apply knows. The cost follows the touched paths. */
import { pathOfKey } from "../path-bytes.ts";
import { type Beneath, openBeneath } from "./beneath.ts";
import {
  childKey,
  type FileSwitch,
  type FileVersion,
  indexInfo,
  isSameVersion,
  type Side,
} from "./file-switch.ts";
import { fingerprint } from "./fingerprint.ts";
import type { JournalFile } from "./journal.ts";
import type { UserRepository } from "./user-repository.ts";

/** How the work tree differs from one side, in latin1 paths. */
export interface Differences {
  /** Files that are to be there and are not, or have other content or another kind. */
  readonly changed: Set<string>;
  /** Things in the way where nothing is to be. */
  readonly extra: Set<string>;
}

/** Compares files with how an apply left or found them, byte by byte. */
export async function compareLooks(
  repository: UserRepository,
  files: readonly JournalFile[],
  side: Side,
): Promise<Differences> {
  const tree = await openBeneath(repository.top, repository.owner);
  try {
    const changed = new Set<string>();
    for (const file of files.filter((item) => item[side] !== null)) {
      const print = await fingerprint(tree, file.path);
      if (print === null || !file.looks[side].includes(print)) changed.add(file.path);
    }
    return { changed, extra: await findExtra(tree, files, side) };
  } finally {
    await tree.close();
  }
}

/**
 * Compares files as git does (filters, line ends, `core.fileMode`), through a scratch index that holds only the touched paths.
 * `scratchIndex` is a path the owner of the repository can write to.
 */
export async function compareFiles(
  repository: UserRepository,
  switches: readonly FileSwitch[],
  side: Side,
  scratchIndex: string,
): Promise<Differences> {
  const present = switches.filter((item) => item[side] !== null);
  const changed = new Set<string>();
  if (present.length > 0) {
    const options = { indexFile: scratchIndex };
    await repository.gitBytes(["update-index", "-z", "--index-info"], {
      ...options,
      input: indexInfo(present, side),
    });
    // The exit code says only that something differs; the listing below says what.
    await repository.git(["update-index", "-q", "--refresh"], options);
    const output = await repository.gitBytes(["diff-files", "-z", "--name-only", "--no-ext-diff"], options);
    for (const path of output.toString("latin1").split("\0")) if (path !== "") changed.add(path);
    await repository.run("rm", ["-f", "--", scratchIndex]);
  }
  const tree = await openBeneath(repository.top, repository.owner);
  try {
    for (const { path } of present) {
      if ((await tree.kindOf(pathOfKey(path))) === "behind-link") changed.add(path);
    }
    return { changed, extra: await findExtra(tree, switches, side) };
  } finally {
    await tree.close();
  }
}

/** What lies where one side has nothing. A directory that holds only files of that side is fine: those go first. */
async function findExtra(tree: Beneath, switches: readonly FileSwitch[], side: Side): Promise<Set<string>> {
  const present = new Set(switches.filter((item) => item[side] !== null).map((item) => item.path));
  const extra = new Set<string>();
  for (const item of switches) {
    if (item[side] !== null) continue;
    const kind = await tree.kindOf(pathOfKey(item.path));
    if (kind === "directory") await addForeign(tree, item.path, present, extra);
    else if (kind === "behind-link") {
      // A file of this side that becomes a directory is replaced; anything else above the path is in the way.
      if (!hasAncestorIn(item.path, present)) extra.add(item.path);
    } else if (kind !== "missing") extra.add(item.path);
  }
  return extra;
}

function hasAncestorIn(path: string, present: ReadonlySet<string>): boolean {
  for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) {
    if (present.has(path.slice(0, end))) return true;
  }
  return false;
}

async function addForeign(
  tree: Beneath,
  top: string,
  present: ReadonlySet<string>,
  extra: Set<string>,
): Promise<void> {
  const pending = [top];
  for (
    let directory = pending.pop();
    directory !== undefined && extra.size < 1000;
    directory = pending.pop()
  ) {
    const names = await tree.list(pathOfKey(directory));
    if (names.length === 0) extra.add(directory);
    for (const name of names) {
      const child = childKey(directory, name);
      if (present.has(child)) continue;
      if ((await tree.kindOf(pathOfKey(child))) === "directory") pending.push(child);
      else extra.add(child);
    }
  }
}

/** Touched paths whose index entry is neither of the given sides, or is unmerged. */
export async function findStaged(
  repository: UserRepository,
  switches: readonly FileSwitch[],
  sides: readonly Side[],
): Promise<Set<string>> {
  const touched = new Map(switches.map((item) => [item.path, item]));
  const entries = new Map<string, FileVersion>();
  const unmerged = new Set<string>();
  const output = await repository.gitBytes(["ls-files", "-z", "--stage", "--full-name"]);
  for (const record of output.toString("latin1").split("\0")) {
    const tab = record.indexOf("\t");
    const path = record.slice(tab + 1);
    if (tab === -1 || !touched.has(path)) continue;
    const [mode = "", oid = "", stage] = record.slice(0, tab).split(" ");
    if (stage === "0") entries.set(path, { mode, oid });
    else unmerged.add(path);
  }
  const staged = new Set(unmerged);
  for (const [path, item] of touched) {
    const entry = entries.get(path) ?? null;
    if (!sides.some((side) => isSameVersion(entry, item[side]))) staged.add(path);
  }
  return staged;
}
