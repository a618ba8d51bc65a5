import { err, ok, type Result } from "../../util/result.ts";
import type { ApplyRefusal } from "./apply-refusal.ts";
import { transferObjects } from "./transfer-objects.ts";
import { readHeadCommit, type UserRepository } from "./user-repository.ts";

export interface BranchRequest {
  readonly store: { readonly gitDir: string };
  readonly integrated: { readonly parent: string; readonly commit: string };
  readonly branch: string;
  readonly dryRun: boolean;
}

/** Makes a branch with the integrated commits on top of the run's base commit. Neither HEAD nor index nor work tree is touched. */
export async function createBranch(
  repository: UserRepository,
  request: BranchRequest,
): Promise<Result<{ target: string; headBefore: string | null; undo: string }, ApplyRefusal>> {
  const { branch, integrated } = request;
  const ref = `refs/heads/${branch}`;
  const refused = (reason: ApplyRefusal["reason"]) => err({ reason, files: [branch] });
  const check = await repository.git(["check-ref-format", ref]);
  // git itself makes no branch of these names, though the refs would be legal.
  if (check.exitCode !== 0 || branch.startsWith("-") || branch === "HEAD") return refused("branch-name");
  if ((await repository.git(["show-ref", "--verify", "--quiet", ref])).exitCode === 0)
    return refused("branch-exists");
  const base = await repository.git(["cat-file", "-e", `${integrated.parent}^{commit}`]);
  if (base.exitCode !== 0) return err({ reason: "base-missing", files: [integrated.parent] });
  const head = await readHeadCommit(repository);
  const made = { target: ref, headBefore: head?.commit ?? null, undo: `branch:${integrated.commit}` };
  if (request.dryRun) return ok(made);
  if (integrated.commit !== integrated.parent) {
    await transferObjects(request.store.gitDir, repository, {
      tip: integrated.commit,
      base: integrated.parent,
    });
  }
  const zero = "0".repeat(integrated.commit.length);
  const update = await repository.git(["update-ref", "-m", "bulkhead: apply", ref, integrated.commit, zero]);
  // Somebody else was first, or a branch `a` stands in the way of `a/b`.
  return update.exitCode === 0 ? ok(made) : refused("branch-exists");
}

/** Removes a branch made by `createBranch`, if it still points where it was made to. */
export async function removeBranch(
  repository: UserRepository,
  ref: string,
  commit: string,
): Promise<Result<null, ApplyRefusal>> {
  const name = ref.replace(/^refs\/heads\//, "");
  const listed = await repository.gitBytes([
    "for-each-ref",
    "--format=%(objectname)%00%(worktreepath)",
    "--",
    ref,
  ]);
  const [oid = "", worktree = ""] = listed.toString("utf8").replace(/\n$/, "").split("\0");
  if (oid === "") return err({ reason: "not-found", files: [name] });
  if (oid !== commit) return err({ reason: "changed", files: [name] });
  if (worktree !== "") return err({ reason: "checked-out", files: [name] });
  const update = await repository.git(["update-ref", "-d", ref, commit]);
  return update.exitCode === 0 ? ok(null) : err({ reason: "changed", files: [name] });
}
