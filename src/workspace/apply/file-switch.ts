import { gitText } from "../git.ts";
import { diffTrees } from "../import/file-changes.ts";
import { gitRunner, readBlobs } from "../list-tree.ts";
import { isGitLike, isGitmodulesLike, pathKey, splitPath, symlinkObjection } from "../path-bytes.ts";

/** One version of a file: as git has it in a tree. */
export interface FileVersion {
  readonly mode: string;
  readonly oid: string;
}

/** A path that an apply takes from one version to another; null is "not there". */
export interface FileSwitch {
  /** latin1. */
  readonly path: string;
  readonly before: FileVersion | null;
  readonly after: FileVersion | null;
}

export type Side = "before" | "after";

/** What has to change to turn one tree of the object store into another. */
export async function listSwitches(gitDir: string, before: string, after: string): Promise<FileSwitch[]> {
  return (await diffTrees(gitDir, before, after)).map((change) => ({
    path: change.path,
    before: version(change.oldMode, change.oldOid),
    after: version(change.newMode, change.newOid),
  }));
}

/**
 * The paths that may not be written to a work tree. The importer let none of them in; this is asked again, since here is where it
 * would hurt: submodules, names that git could take for its own, links that lead outside.
 */
export async function findUnsafe(gitDir: string, switches: readonly FileSwitch[]): Promise<string[]> {
  const links = switches.flatMap(({ path, after }) =>
    after?.mode === "120000" ? [{ path, oid: after.oid }] : [],
  );
  const targets = await readBlobs(
    gitRunner(gitDir),
    links.map(({ oid }) => oid),
  );
  const targetOf = new Map(links.map(({ path }, index) => [path, targets[index] ?? null]));
  return switches.filter((item) => isUnsafe(item, targetOf.get(item.path))).map(({ path }) => path);
}

/** The same for a chain of commits: each of them can be checked out by itself. */
export async function findUnsafeInChain(
  gitDir: string,
  range: { readonly parent: string; readonly commit: string },
): Promise<string[]> {
  const list = await gitText(gitDir, ["rev-list", "--reverse", `${range.parent}..${range.commit}`]);
  const unsafe = new Set<string>();
  let before = range.parent;
  for (const commit of list.split("\n").filter((line) => line !== "")) {
    for (const path of await findUnsafe(gitDir, await listSwitches(gitDir, before, commit))) unsafe.add(path);
    before = commit;
  }
  return [...unsafe];
}

const FILE_MODES: readonly string[] = ["100644", "100755", "120000"];

function isUnsafe({ path, before, after }: FileSwitch, target: Buffer | null | undefined): boolean {
  const bytes = Buffer.from(path, "latin1");
  const parts = splitPath(bytes);
  if (before?.mode === "160000" || (after !== null && !FILE_MODES.includes(after.mode))) return true;
  if (parts.some((part) => isGitLike(part) || ["", ".", ".."].includes(pathKey(part)))) return true;
  if (target === undefined) return false;
  return target === null || parts.some(isGitmodulesLike) || symlinkObjection(bytes, target) !== null;
}

function version(mode: string, oid: string): FileVersion | null {
  return mode === "000000" ? null : { mode, oid };
}

/** Input of `update-index -z --index-info` that gives each path the version of one side; removals first (file and directory swap). */
export function indexInfo(switches: readonly FileSwitch[], side: Side): Buffer {
  const lines = [...switches]
    .sort((a, b) => Number(a[side] !== null) - Number(b[side] !== null))
    .map((item) => {
      const zero = "0".repeat((item.before ?? item.after)?.oid.length ?? 40);
      const { mode, oid } = item[side] ?? { mode: "0", oid: zero };
      return `${mode} ${oid}\t${item.path}\0`;
    });
  return Buffer.from(lines.join(""), "latin1");
}

/** Whether a version is the other. */
export function isSameVersion(a: FileVersion | null, b: FileVersion | null): boolean {
  return a === null || b === null ? a === b : a.mode === b.mode && a.oid === b.oid;
}

/** The latin1 key of a name in a directory. */
export function childKey(directory: string, name: Buffer): string {
  return directory === "" ? pathKey(name) : `${directory}/${pathKey(name)}`;
}
