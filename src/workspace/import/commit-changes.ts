/** Writes a list of changes as one commit on top of the snapshot, and says what it holds. */
import type { Failure } from "../../model/failure.ts";
import type { AttemptKey } from "../../model/ids.ts";
import type { Patch } from "../../model/patch.ts";
import { err, ok, type Result } from "../../util/result.ts";
import { gitText } from "../git.ts";
import { pathOfKey } from "../path-bytes.ts";
import type { Change, IgnoredCount, ImportRequest, OpenFile } from "./change-source.ts";
import type { CommitRequest, FastImport } from "./fast-import.ts";
import { listFileChanges, touchesSubmodule } from "./file-changes.ts";
import type { ProblemList } from "./problem-list.ts";

type Put = Extract<Change, { kind: "file" | "symlink" }>;

/** Small files opened ahead of the one being written. */
const READ_AHEAD = 8;
const READ_AHEAD_BYTES = 1024 * 1024;

/** The ref that keeps an attempt's commit. */
export function attemptRef(key: AttemptKey): string {
  return `refs/bulkhead/runs/${key.runId}/${key.taskId}/${key.attempt}`;
}

/** Makes the patch. Where nothing differs no commit is made and the snapshot's own is named. Closes the session. */
export async function commitChanges(
  session: FastImport,
  request: ImportRequest,
  found: { readonly changes: readonly Change[]; readonly ignored: IgnoredCount },
  problems: ProblemList,
): Promise<Result<Patch, Failure>> {
  const { gitDir, key, snapshot } = request;
  const parent = snapshot.commit;
  const parentTree = (await session.lookup(parent, ""))?.oid ?? "";
  let made: { commit: string | null; tree: string } = { commit: null, tree: parentTree };
  if (found.changes.length > 0) {
    const entries = await writeBlobs(session, found.changes, problems);
    if (problems.isEmpty)
      made = await session.commit(commitRequest(request, found.changes, entries), parentTree);
  }
  await session.close();
  if (!problems.isEmpty) return err(problems.failure());
  const common = { attempt: key, parent, tree: made.tree, ignored: found.ignored };
  if (made.commit === null) return ok({ ...common, commit: parent, files: [], empty: true });
  const { files, raw } = await listFileChanges(gitDir, parent, made.commit);
  for (const change of raw.filter(touchesSubmodule)) {
    problems.add(
      pathOfKey(change.path),
      "git-directory",
      "it is a submodule, whose content is not part of this repository",
    );
  }
  if (!problems.isEmpty) {
    await gitText(gitDir, ["update-ref", "-d", attemptRef(key)]);
    return err(problems.failure());
  }
  return ok({ ...common, commit: made.commit, files, empty: false });
}

async function writeBlobs(
  session: FastImport,
  changes: readonly Change[],
  problems: ProblemList,
): Promise<CommitRequest["entries"]> {
  const entries: Array<CommitRequest["entries"][number]> = [];
  const puts = changes.filter((change): change is Put => change.kind !== "deleted");
  for (let start = 0; start < puts.length && problems.isEmpty; start += READ_AHEAD) {
    const some = puts.slice(start, start + READ_AHEAD);
    const opened = some.map((put) => (isSmall(put) ? openContent(put) : null));
    for (const promise of opened) promise?.catch(() => undefined); // Awaited below, in order.
    for (const [index, put] of some.entries()) {
      const blob = await writeBlob(session, put, opened[index] ?? null);
      if (blob === null) {
        problems.add(
          put.path,
          "unreadable",
          "it is no regular file any more, or its size changed while it was read",
        );
      } else {
        entries.push({ path: put.path, mode: put.kind === "symlink" ? "120000" : put.mode, blob });
      }
    }
  }
  return entries;
}

function isSmall(put: Put): boolean {
  return put.kind === "symlink" || put.size <= READ_AHEAD_BYTES;
}

async function openContent(put: Put): Promise<OpenFile | null> {
  if (put.kind === "symlink") {
    return { size: put.target.length, bytes: put.target, close: () => Promise.resolve() };
  }
  return "open" in put.content ? put.content.open() : null;
}

/** The blob's name for the commit, or null where its content cannot be read whole. */
async function writeBlob(
  session: FastImport,
  put: Put,
  opening: Promise<OpenFile | null> | null,
): Promise<string | null> {
  if (put.kind === "file" && "oid" in put.content) return put.content.oid;
  const file = await (opening ?? openContent(put));
  if (file === null) return null;
  try {
    return await session.writeFile(file);
  } finally {
    await file.close();
  }
}

function commitRequest(
  request: ImportRequest,
  changes: readonly Change[],
  entries: CommitRequest["entries"],
): CommitRequest {
  const { key, snapshot } = request;
  const time = `${Math.floor(request.atMs / 1000)} +0000`;
  return {
    ref: attemptRef(key),
    parent: snapshot.commit,
    author: `${key.taskId} <${key.taskId}@bulkhead.invalid> ${time}`,
    committer: `bulkhead <bulkhead@bulkhead.invalid> ${time}`,
    message: commitMessage(request.message, key),
    deleted: changes.filter((change) => change.kind === "deleted").map((change) => change.path),
    entries,
  };
}

/** The message with the trailers that lead back to the attempt. */
function commitMessage(text: string, key: AttemptKey): Buffer {
  const body = text.replaceAll("\0", "").trim() || `bulkhead: ${key.taskId}`;
  const trailers = [
    `Bulkhead-Run: ${key.runId}`,
    `Bulkhead-Task: ${key.taskId}`,
    `Bulkhead-Attempt: ${key.attempt}`,
  ];
  return Buffer.from(`${body}\n\n${trailers.join("\n")}\n`, "utf8");
}
