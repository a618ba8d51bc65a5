import type { Failure } from "../model/failure.ts";
import type { TaskId } from "../model/ids.ts";
import { err, ok, type Result } from "../util/result.ts";
import { gitBytes, gitFailed, gitText, runGit } from "./git.ts";
import { commitTree } from "./inside-repository.ts";
import { splitNul } from "./list-tree.ts";
import { formatPath, pathOfKey } from "./path-bytes.ts";

export interface ParentPatch {
  readonly taskId: TaskId;
  readonly commit: string;
}

/**
 * Puts the patches of a task's dependencies together: the commit its attempt starts from. Deterministic: the same parents in the
 * same order give the same commit id. One patch that holds all the others is taken as it is; several are merged three-way, in memory
 * (no work tree, no merge driver). Files that cannot be merged are the failure `parents-conflict`.
 */
export async function mergeParents(
  gitDir: string,
  baseCommit: string,
  parents: readonly ParentPatch[],
): Promise<Result<string, Failure>> {
  const distinct = [...new Set(parents.map((parent) => parent.commit))];
  const independent = await independentCommits(gitDir, [baseCommit, ...distinct]);
  const [first, ...rest] = distinct.filter((commit) => independent.has(commit));
  if (first === undefined) return ok(baseCommit);
  if (rest.length === 0) return ok(first);
  const merged = [first];
  let current = first;
  let tree = "";
  for (const commit of rest) {
    const outcome = await mergeTrees(gitDir, current, commit);
    if (!outcome.ok) {
      const files = outcome.error;
      const involved = await touching(gitDir, baseCommit, merged, files);
      const taskIds = parents.filter(({ commit: id }) => id === commit || involved.has(id));
      return err({
        reason: "parents-conflict",
        fault: "task",
        parents: [...new Set(taskIds.map(({ taskId }) => taskId))],
        files: files.map((file) => formatPath(pathOfKey(file))),
      });
    }
    tree = outcome.value;
    merged.push(commit);
    const isLast = merged.length === rest.length + 1;
    current = await commitTree(gitDir, {
      tree,
      parents: isLast ? [baseCommit, ...merged] : [current, commit],
      message: `Patches of ${taskNames(parents)}\n`,
      dateFrom: baseCommit,
    });
  }
  return ok(current);
}

/** Those commits that no other of them contains. */
async function independentCommits(gitDir: string, commits: readonly string[]): Promise<Set<string>> {
  const output = await gitText(gitDir, ["merge-base", "--independent", ...new Set(commits)]);
  return new Set(output.split("\n"));
}

/** The merged tree, or the paths that conflict. */
async function mergeTrees(gitDir: string, ours: string, theirs: string): Promise<Result<string, string[]>> {
  const args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs];
  const output = await runGit(gitDir, args);
  const [tree = "", ...files] = splitNul(output.stdout);
  if (output.exitCode === 0) return ok(tree);
  if (output.exitCode === 1) return err([...new Set(files.filter((file) => file !== ""))]);
  throw gitFailed(args, output, gitDir);
}

/** The commits that changed one of `files`; all of them where none did (a rename can put the conflict elsewhere). */
async function touching(
  gitDir: string,
  baseCommit: string,
  commits: readonly string[],
  files: readonly string[],
): Promise<Set<string>> {
  const conflicting = new Set(files);
  const found = new Set<string>();
  for (const commit of commits) {
    const args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", baseCommit, commit];
    const changed = splitNul(await gitBytes(gitDir, args));
    if (changed.some((path) => conflicting.has(path))) found.add(commit);
  }
  return found.size > 0 ? found : new Set(commits);
}

function taskNames(parents: readonly ParentPatch[]): string {
  return parents.map(({ taskId }) => taskId).join(", ");
}
