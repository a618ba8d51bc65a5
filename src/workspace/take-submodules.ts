import { RunnerError } from "../model/runner-error.ts";
import { gitRunner } from "./list-tree.ts";
import { pathOfKey, showPath } from "./path-bytes.ts";
import { locateRepository } from "./repository-state.ts";
import { canLayOut, type SubmoduleTree } from "./submodule-files.ts";
import { findSubmodules, hasSubmodules } from "./submodules.ts";
import type { ObjectStore } from "./workspace.ts";

export interface TakenSubmodules {
  readonly trees: readonly SubmoduleTree[];
  readonly warnings: readonly string[];
}

/**
 * Brings the submodules of a commit that can be had on this machine into the store. Those that cannot are told of when the run begins
 * (`RepositoryState.warnings`); here only what goes wrong with one that was there. A run goes on without it.
 */
export async function takeSubmodules(
  store: Pick<ObjectStore, "gitDir" | "importCommit">,
  repository: string,
  commit: string,
): Promise<TakenSubmodules> {
  const run = gitRunner(store.gitDir);
  const trees: SubmoduleTree[] = [];
  const failed: string[] = [];
  const warnings: string[] = [];
  if (!(await hasSubmodules(run, commit))) return { trees, warnings };
  for (const found of await findSubmodules(await locateRepository(repository), run, commit)) {
    const { path, gitDir } = found;
    // What is nested in one that did not come has no place to go to.
    if (gitDir === null || failed.some((outer) => path.startsWith(`${outer}/`))) continue;
    const why = canLayOut(path) ? await bringIn(store, gitDir, found.commit) : "its path is not UTF-8";
    if (why === null) trees.push({ path, commit: found.commit });
    else {
      failed.push(path);
      warnings.push(`submodule ${showPath(pathOfKey(path))} stays an empty directory in snapshots: ${why}`);
    }
  }
  return { trees, warnings };
}

async function bringIn(
  store: Pick<ObjectStore, "importCommit">,
  gitDir: string,
  commit: string,
): Promise<string | null> {
  try {
    await store.importCommit(gitDir, commit, 1);
    return null;
  } catch (error) {
    if (error instanceof RunnerError) return error.message;
    throw error;
  }
}
