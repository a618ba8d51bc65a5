import { gitBytes } from "../git.ts";
import { diffTrees } from "../import/file-changes.ts";
import { isGitLike, pathKey, splitPath, symlinkObjection } from "../path-bytes.ts";

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
  const unsafe: string[] = [];
  for (const { path, before, after } of switches) {
    const bytes = Buffer.from(path, "latin1");
    const modes = [before?.mode, after?.mode];
    if (modes.includes("160000") || splitPath(bytes).some(isGitLike)) unsafe.push(path);
    else if (after?.mode === "120000") {
      const target = await gitBytes(gitDir, ["cat-file", "blob", after.oid]);
      if (symlinkObjection(bytes, target) !== null) unsafe.push(path);
    }
  }
  return unsafe;
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

/** Every directory above the paths, the outermost first. */
export function directoriesAbove(switches: readonly FileSwitch[]): string[] {
  const found = new Set<string>();
  for (const { path } of switches) {
    for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1))
      found.add(path.slice(0, end));
  }
  return [...found];
}

/** The latin1 key of a name in a directory. */
export function childKey(directory: string, name: Buffer): string {
  return directory === "" ? pathKey(name) : `${directory}/${pathKey(name)}`;
}
