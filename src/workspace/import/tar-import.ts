import type { Failure } from "../../model/failure.ts";
import type { Patch } from "../../model/patch.ts";
import { err, type Result } from "../../util/result.ts";
import { pathOfKey } from "../path-bytes.ts";
import { type Admission, blobId, createAdmission } from "./admission.ts";
import { listTree } from "./base-tree.ts";
import type { Change, IgnoredCount, ImportRequest } from "./change-source.ts";
import { commitChanges } from "./commit-changes.ts";
import { openFastImport, type TreeEntry } from "./fast-import.ts";
import { createIgnoreRules, type IgnoreRules } from "./ignore-rules.ts";
import { type ManifestEntry, readManifest } from "./manifest-reader.ts";
import { createProblemList, type ProblemList } from "./problem-list.ts";
import { createSpool, type Spool } from "./spool.ts";
import { type Collected, collectTar, type Found } from "./tar-collect.ts";

export interface TarImportRequest extends ImportRequest {
  /** The whole workspace as the engine archives it. Left unread where a limit is broken: destroy it afterwards. */
  readonly tar: AsyncIterable<Uint8Array | string>;
  /** Leading path of the entries besides `./`, e.g. `workspace`. */
  readonly prefix?: string;
  /** Private directory for what has to be put aside on the way. */
  readonly spoolDir: string;
}

/** Reads a whole workspace off a tar stream into a commit: the same patch as `importFromOverlay` makes of the same tree. */
export async function importFromTar(request: TarImportRequest): Promise<Result<Patch, Failure>> {
  const { gitDir, snapshot, limits } = request;
  const problems = createProblemList();
  const [manifest, tree, spool] = await Promise.all([
    readManifest(snapshot.manifestPath),
    listTree(gitDir, snapshot.commit, true),
    createSpool(request.spoolDir),
  ]);
  try {
    const collected = await collectTar(
      {
        ...request,
        prefix: request.prefix ?? "",
        manifest,
        isTracked: (path) => tree.has(path),
        idLength: snapshot.commit.length,
      },
      spool,
      problems,
    );
    const base = { lookup: (path: string) => Promise.resolve(tree.get(path) ?? null) };
    const admission = createAdmission(limits, problems, base, 0);
    const rules = createIgnoreRules(request.exclude);
    for (const [directory, content] of collected.ignoreFiles) rules.addFile(directory, content);
    const chosen = await choose({ collected, manifest, tree, admission, rules, problems, spool });
    if (!problems.isEmpty) return err(problems.failure());
    const session = openFastImport(gitDir, spool.bytes);
    try {
      return await commitChanges(session, request, chosen, problems);
    } finally {
      await session.close();
    }
  } finally {
    await spool.close();
  }
}

interface Choice {
  readonly collected: Collected;
  readonly manifest: ReadonlyMap<string, ManifestEntry>;
  readonly tree: ReadonlyMap<string, TreeEntry>;
  readonly admission: Admission;
  readonly rules: IgnoreRules;
  readonly problems: ProblemList;
  readonly spool: Spool;
}

/** Second half: with all ignore rules known, which of the things found are changes. */
async function choose(choice: Choice): Promise<{ changes: Change[]; ignored: IgnoredCount }> {
  const { collected, manifest, tree, admission, rules, problems } = choice;
  const changes: Change[] = [];
  const ignored: IgnoredCount = { files: 0, bytes: 0 };
  const directories = new Map<string, boolean>();
  const paths = [...collected.found.keys()].sort((a, b) => (a < b ? -1 : 1));

  /** Whether every directory above may go in; each is asked for once, the outermost first. */
  function admitAbove(key: string): boolean {
    for (let end = key.indexOf("/"); end !== -1; end = key.indexOf("/", end + 1)) {
      if (!admitDirectory(key.slice(0, end))) return false;
    }
    return true;
  }
  function admitDirectory(key: string): boolean {
    const known = directories.get(key) ?? admission.admitPath(pathOfKey(key));
    directories.set(key, known);
    return known;
  }

  for (const key of paths) {
    const found = collected.found.get(key);
    if (found === undefined || problems.isOver || isUnchanged(found, manifest.get(key))) continue;
    const path = pathOfKey(key);
    if (found.kind === "directory") {
      if (!rules.isIgnored(key, true) && admitAbove(key)) admitDirectory(key);
      continue;
    }
    const isTracked = tree.has(key) && found.kind !== "special";
    if (!isTracked && rules.isIgnored(key, false)) {
      ignored.files += 1;
      ignored.bytes += found.kind === "file" ? found.size : 0;
      continue;
    }
    if (!admitAbove(key)) continue;
    const change = await admit(choice, path, found);
    if (change) changes.push(change);
  }
  for (const [key, before] of manifest) {
    const kind = collected.found.get(key)?.kind;
    if (before.untracked || (kind !== undefined && kind !== "directory") || problems.isOver) continue;
    if (admission.admitDeletion(pathOfKey(key))) changes.push({ path: pathOfKey(key), kind: "deleted" });
  }
  return { changes, ignored };
}

function isUnchanged(found: Found, before: ManifestEntry | undefined): boolean {
  if (found.kind === "file") return found.mode === before?.mode && found.oid === before.blob;
  return (
    found.kind === "symlink" &&
    before?.mode === "120000" &&
    blobId(found.target, before.blob.length) === before.blob
  );
}

async function admit(choice: Choice, path: Buffer, found: Found): Promise<Change | null> {
  const { admission, problems, spool } = choice;
  if (found.kind === "special") {
    admission.refuseSpecial(path, found.what);
    return null;
  }
  if (found.kind === "directory" || !admission.admitPath(path)) return null;
  if (found.kind === "symlink") {
    return (await admission.admitSymlink(path, found.target))
      ? { path, kind: "symlink", target: found.target }
      : null;
  }
  if (!admission.admitFile(path, found.size)) return null;
  const { mode, size, oid, place } = found;
  if (found.isDropped) {
    problems.add(
      path,
      "unreadable",
      "a .gitignore that came after it takes it in again, when its content was gone",
    );
    return null;
  }
  const content = place === null ? { oid } : { open: () => spool.open(place) };
  return { path, kind: "file", mode, size, content };
}
