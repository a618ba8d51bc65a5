import { err, ok, type Result } from "../../util/result.ts";
import { gitFailed, gitText, runGit } from "../git.ts";
import { splitNul } from "../list-tree.ts";

export interface MergeRequest {
  /** Commit that counts as the common ancestor, whatever the history says. */
  readonly base: string;
  readonly ours: string;
  readonly theirs: string;
}

const STAND_IN = {
  GIT_AUTHOR_NAME: "bulkhead",
  GIT_AUTHOR_EMAIL: "bulkhead@bulkhead.invalid",
  GIT_AUTHOR_DATE: "@1 +0000",
  GIT_COMMITTER_NAME: "bulkhead",
  GIT_COMMITTER_EMAIL: "bulkhead@bulkhead.invalid",
  GIT_COMMITTER_DATE: "@1 +0000",
};

/**
 * Three-way merge in the object store: the merged tree, or the paths (latin1) that conflict.
 *
 * `merge-tree --merge-base` is newer than the git that is asked for, so both sides get stand-in commits with `base` as their only
 * parent. Renames of whole directories are not guessed: files must not move to places that no patch named.
 */
export async function mergeOnto(gitDir: string, request: MergeRequest): Promise<Result<string, string[]>> {
  const names = [request.base, request.ours, request.theirs].map((commit) => `${commit}^{tree}`);
  const trees = (await gitText(gitDir, ["rev-parse", ...names])).split("\n");
  const [base, ours = "", theirs = ""] = trees;
  if (ours === base || ours === theirs) return ok(theirs);
  if (theirs === base) return ok(ours);
  const [left, right] = await Promise.all(
    [ours, theirs].map((tree) =>
      gitText(gitDir, ["commit-tree", "-p", request.base, "-m", "merge side", tree], { env: STAND_IN }),
    ),
  );
  const args = [
    "-c",
    "merge.directoryRenames=false",
    "merge-tree",
    "--write-tree",
    "-z",
    "--name-only",
    "--no-messages",
    left ?? "",
    right ?? "",
  ];
  const output = await runGit(gitDir, args);
  const [tree = "", ...files] = splitNul(output.stdout);
  if (output.exitCode === 0) return ok(tree);
  if (output.exitCode === 1) return err([...new Set(files.filter((file) => file !== ""))]);
  throw gitFailed(args, output, gitDir);
}
