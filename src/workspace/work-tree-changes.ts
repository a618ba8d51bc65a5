import { gitFailed } from "./git.ts";
import { inRepository } from "./in-repository.ts";
import { splitNul } from "./list-tree.ts";
import { pathOfKey, showPath } from "./path-bytes.ts";
import { ENVIRONMENT_FOR_FILES, personFiles } from "./person-files.ts";
import { filtersOff, readConfig } from "./repository-state.ts";

/** How a work tree differs from HEAD. Paths have one character per byte. */
export interface WorkTreeChanges {
  /** Tracked files whose content in the work tree is not that of the index. */
  readonly changed: readonly string[];
  readonly deleted: readonly string[];
  /** Differ from HEAD in the index only. */
  readonly staged: readonly string[];
  readonly unmerged: readonly string[];
  /** Neither tracked nor ignored. */
  readonly untracked: readonly string[];
  /** Untracked directories that are repositories of their own. */
  readonly repositories: readonly string[];
}

const UNMERGED: ReadonlySet<string> = new Set(["DD", "AU", "UD", "UA", "DU", "AA", "UU"]);

/** Options of git before the subcommand: the person's own ignore and attribute files, no filter driver. */
export async function changeOptions(top: string): Promise<string[]> {
  const [files, config] = await Promise.all([personFiles(top), readConfig(top)]);
  return [...files, ...filtersOff(config), "-c", "core.safecrlf=false", "-c", "core.splitIndex=false"];
}

/**
 * Lists the changes, by the person's own rules for what is ignored. No filter driver is run, so a file that one stores differently can
 * show as changed although it is not. LIMITATION: what changed inside a submodule is not looked at.
 */
export async function readWorkTreeChanges(top: string, options: readonly string[]): Promise<WorkTreeChanges> {
  const [status, others] = await Promise.all([
    ask(top, options, [
      "status",
      "--porcelain",
      "-z",
      "--no-renames",
      "--untracked-files=no",
      "--ignore-submodules=all",
    ]),
    ask(top, options, ["ls-files", "-z", "--others", "--exclude-standard"]),
  ]);
  const changed: string[] = [];
  const deleted: string[] = [];
  const staged: string[] = [];
  const unmerged: string[] = [];
  for (const record of status) {
    const path = record.slice(3);
    if (UNMERGED.has(record.slice(0, 2))) unmerged.push(path);
    else if (record[1] === "D") deleted.push(path);
    else if (record[1] === " ") staged.push(path);
    else changed.push(path);
  }
  return {
    changed,
    deleted,
    staged,
    unmerged,
    untracked: others.filter((path) => !path.endsWith("/")),
    repositories: others.filter((path) => path.endsWith("/")).map((path) => path.slice(0, -1)),
  };
}

/** Files that `git status` would name, as text for people. */
export interface UncommittedFiles {
  readonly tracked: readonly string[];
  readonly untracked: readonly string[];
}

/** Names what is not committed. */
export async function readUncommitted(top: string): Promise<UncommittedFiles> {
  const changes = await readWorkTreeChanges(top, await changeOptions(top));
  const tracked = [...changes.changed, ...changes.deleted, ...changes.staged, ...changes.unmerged];
  return { tracked: named(tracked), untracked: named(changes.untracked) };
}

function named(paths: readonly string[]): string[] {
  return paths.toSorted((a, b) => (a < b ? -1 : 1)).map((path) => showPath(pathOfKey(path)));
}

async function ask(top: string, options: readonly string[], args: readonly string[]): Promise<string[]> {
  const output = await inRepository(top, [...options, ...args], { env: ENVIRONMENT_FOR_FILES });
  if (output.exitCode !== 0) throw gitFailed(args, output, null);
  return splitNul(output.stdout);
}
