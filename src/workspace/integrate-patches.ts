import type { TaskId } from "../model/ids.ts";
import { err, ok, type Result } from "../util/result.ts";
import { mergeOnto } from "./apply/merge-onto.ts";
import { gitBytes, gitText } from "./git.ts";
import { formatPath, pathOfKey } from "./path-bytes.ts";
import type { Identity } from "./read-identity.ts";

export interface PatchToIntegrate {
  readonly taskId: TaskId;
  /** What the attempt started from. */
  readonly parent: string;
  readonly commit: string;
}

export interface IntegrationConflict {
  /** The task whose patch does not fit on what came before it. */
  readonly taskId: TaskId;
  readonly files: readonly string[];
}

export interface Integrated {
  /** What the patches were put on: the run's base commit. */
  readonly parent: string;
  /** Tip of a chain with one commit per patch that changed something; `parent` where none did. */
  readonly commit: string;
  readonly tree: string;
}

/**
 * Puts patches on top of the base commit one after the other, in the object store alone. Each is merged three-way against the
 * snapshot it started from, so that what it shares with its dependencies counts once. A patch that adds nothing makes no commit.
 * The same input gives the same commit ids. Patches MUST come in an order in which dependencies go first. The author of each commit is
 * the task; `committer` is who puts them together, bulkhead itself where nobody is named.
 */
export async function integratePatches(
  gitDir: string,
  baseCommit: string,
  patches: readonly PatchToIntegrate[],
  committer: Identity | null = null,
): Promise<Result<Integrated, IntegrationConflict>> {
  let commit = baseCommit;
  let tree = await gitText(gitDir, ["rev-parse", `${baseCommit}^{tree}`]);
  for (const patch of patches) {
    const merged = await mergeOnto(gitDir, { base: patch.parent, ours: commit, theirs: patch.commit });
    if (!merged.ok) {
      const files = merged.error.map((path) => formatPath(pathOfKey(path)));
      return err({ taskId: patch.taskId, files });
    }
    if (merged.value === tree) continue;
    tree = merged.value;
    commit = await copyCommit(gitDir, { from: patch.commit, tree, parent: commit, committer });
  }
  return ok({ parent: baseCommit, commit, tree });
}

/**
 * The same commits on another base, for a branch of a run whose base holds uncommitted changes: the branch begins at a commit the person has.
 * The paths in which a patch builds on what that base lacks are the error.
 */
export async function moveOnto(
  gitDir: string,
  base: string,
  integrated: { readonly parent: string; readonly commit: string },
): Promise<Result<Integrated, readonly string[]>> {
  const range = `${integrated.parent}..${integrated.commit}`;
  const list = await gitText(gitDir, ["rev-list", "--reverse", "--parents", range]);
  let commit = base;
  let tree = await gitText(gitDir, ["rev-parse", `${base}^{tree}`]);
  for (const line of list.split("\n").filter((one) => one !== "")) {
    const [from = "", parent = ""] = line.split(" ");
    const merged = await mergeOnto(gitDir, { base: parent, ours: commit, theirs: from });
    if (!merged.ok) return err(merged.error.map((path) => formatPath(pathOfKey(path))));
    tree = merged.value;
    commit = await copyCommit(gitDir, { from, tree, parent: commit, committer: null });
  }
  return ok({ parent: base, commit, tree });
}

/** A commit with the author, dates and message of `from` but another tree, parent and (where one is given) committer. */
async function copyCommit(
  gitDir: string,
  copy: {
    readonly from: string;
    readonly tree: string;
    readonly parent: string;
    readonly committer: Identity | null;
  },
): Promise<string> {
  const raw = await gitBytes(gitDir, ["cat-file", "commit", copy.from]);
  const end = raw.indexOf("\n\n");
  const headers = raw.toString("latin1", 0, end).split("\n");
  const kept = headers.filter((line) => /^(?:author|committer|encoding) /.test(line));
  const { committer } = copy;
  const names =
    committer === null
      ? kept
      : kept.map((line) => line.replace(/^committer .*> /, () => `committer ${formatIdentity(committer)} `));
  const head = [`tree ${copy.tree}`, `parent ${copy.parent}`, ...names].join("\n");
  const input = Buffer.concat([Buffer.from(head, "latin1"), raw.subarray(end)]);
  return gitText(gitDir, ["hash-object", "-t", "commit", "-w", "--stdin"], { input });
}

/** In git's own form: no angle brackets, no line ends. One character per byte, as the headers around it. */
function formatIdentity({ name, email }: Identity): string {
  const clean = (text: string) =>
    Buffer.from(text.replace(/[<>\n\0]/g, "").trim(), "utf8").toString("latin1");
  return `${clean(name) || "bulkhead"} <${clean(email)}>`;
}
