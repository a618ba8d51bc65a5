/**
 * Base trees: the files of a commit, checked out once and then shared read-only by every attempt that starts there.
 *
 *   <cache>/trees/<key>/tree/           what the attempt sees, with its own `.git`; all owned by the agent's uid
 *   <cache>/trees/<key>/manifest.json   workspace_manifest.json
 *   <cache>/trees/<key>/meta.json       what is in it, for layers on top
 *
 * Theory of operation: everything that influences the content is part of the key. Files get the commit's date and the agent's
 * owner first and the index is refreshed last, so that `git status` inside finds every stat as recorded and hashes nothing
 * (overlayfs passes inode and ctime of the lower file through). core.checkStat and core.trustctime stay at their defaults: relaxing them
 * would hide edits. LIMITATION: where files are left out, the inner history is one commit; older ones would bring them in again.
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FileFilter } from "../model/task.ts";
import { baseTreesDir } from "../util/state-layout.ts";
import type { BuildOnce } from "./build-once.ts";
import type { ExtraFile } from "./extra-files.ts";
import { createFileFilter, isWholeTree } from "./filter-files.ts";
import { gitText, runGit } from "./git.ts";
import {
  commitTree,
  historyArguments,
  layGitDirectory,
  packObjects,
  shallowBoundary,
  treeWithout,
} from "./inside-repository.ts";
import { gitRunner, listTree, type TreeEntry } from "./list-tree.ts";
import { writeManifest } from "./manifest.ts";
import { joinPath, pathOfKey, utf8Path } from "./path-bytes.ts";
import { runTool } from "./run-tool.ts";
import { checkOutSubmodules, listSubmoduleFiles, type SubmoduleTree } from "./submodule-files.ts";

/** Where trees are built and for whom. */
export interface TreeContext {
  readonly gitDir: string;
  readonly cacheDir: string;
  readonly objectFormat: "sha1" | "sha256";
  /** Owner of the files on the host, or null where this process may not give files away. */
  readonly uid: number | null;
  readonly once: BuildOnce;
}

/** What a snapshot holds besides the files of its commit. */
export interface AddedFiles {
  readonly extra: readonly ExtraFile[];
  readonly submodules: readonly SubmoduleTree[];
}

/** A base tree or a layer, complete on disk. */
export interface BuiltTree {
  readonly key: string;
  readonly directory: string;
  /** The commit as patches name it. */
  readonly commit: string;
  /** HEAD inside and its tree; differs from `commit` where files were left out. */
  readonly insideHead: string;
  readonly insideTree: string;
}

export const FORMAT_VERSION = 1;

/** Directory of what the attempt sees. */
export function treeDirectory(built: { readonly directory: string }): string {
  return join(built.directory, "tree");
}

/** Path of the manifest. */
export function manifestPath(built: { readonly directory: string }): string {
  return join(built.directory, "manifest.json");
}

/** A name that stands for content: the hash of everything that decides it. */
export function treeKey(parts: Readonly<Record<string, unknown>>): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32);
}

/** Returns the base tree of a commit under a filter, building it where it is not there yet. */
export async function ensureBaseTree(
  context: TreeContext,
  commit: string,
  filter: FileFilter,
  added: AddedFiles,
): Promise<BuiltTree> {
  const { extra, submodules } = added;
  const whole = isWholeTree(filter);
  const key = treeKey({
    version: FORMAT_VERSION,
    kind: "base",
    commit,
    uid: context.uid,
    history: whole ? filter.history : 1,
    filter: whole ? null : [filter.include, filter.exclude, filter.tests, filter.keywords],
    extra: extra.map((file) => [file.path, file.mode, file.blob]),
    ...(submodules.length > 0 ? { submodules: submodules.map(({ path, commit: id }) => [path, id]) } : {}),
  });
  const directory = join(baseTreesDir(context.cacheDir), key);
  await context.once.ensure({
    directory,
    build: (temporary) => buildBaseTree(context, temporary, { key, commit, filter, added }),
    intact: async (built) => {
      const args = ["--work-tree", join(built, "tree"), "diff-files", "--quiet", "--ignore-submodules=all"];
      return (await runGit(join(built, "tree/.git"), args)).exitCode === 0;
    },
  });
  return readBuiltTree(directory);
}

/** Reads what a complete directory says of itself. */
export async function readBuiltTree(directory: string): Promise<BuiltTree> {
  const meta = JSON.parse(await readFile(join(directory, "meta.json"), "utf8")) as Omit<
    BuiltTree,
    "directory"
  >;
  return { ...meta, directory };
}

async function buildBaseTree(
  context: TreeContext,
  temporary: string,
  request: {
    readonly key: string;
    readonly commit: string;
    readonly filter: FileFilter;
    readonly added: AddedFiles;
  },
): Promise<void> {
  const { gitDir: storeDir, objectFormat } = context;
  const { commit, filter } = request;
  const { submodules } = request.added;
  const tree = join(temporary, "tree");
  const insideGit = join(tree, ".git");
  const { kept, insideHead, insideTree } = await insideCommit(storeDir, commit, filter, {
    below: null,
    indexFile: join(temporary, "index"),
  });
  const extra = await withoutTracked(request.added.extra, kept);
  const history = insideHead === commit ? filter.history : 1;
  await mkdir(insideGit, { recursive: true, mode: 0o755 });
  await layGitDirectory(insideGit, {
    head: insideHead,
    objectFormat,
    shallow: await shallowBoundary(storeDir, insideHead, history),
    excludes: extra.map((file) => `/${escapePattern(file.path)}`),
  });
  await packObjects(storeDir, [...historyArguments(history), insideHead], insideGit);
  await gitText(insideGit, ["read-tree", insideHead]);
  // A worker per processor; git itself decides whether there are files enough to start them.
  const checkout = [
    "-c",
    "checkout.workers=0",
    "--work-tree",
    tree,
    "checkout-index",
    "--all",
    "--quiet",
    "--index",
  ];
  await gitText(insideGit, checkout, { umask: "022" });
  await checkOutSubmodules(storeDir, submodules, { tree, indexFile: join(temporary, "index"), filter });
  for (const file of extra) await writeExtra(tree, file);
  await finishTree(context, tree, commit);
  await gitText(insideGit, ["--work-tree", tree, "update-index", "-q", "--refresh"]);
  // Refreshing has written a new index, which is ours.
  if (context.uid !== null) await runTool("chown", ["-R", owner(context.uid), insideGit]);
  await rm(join(temporary, "index"), { force: true });
  const inSubmodules = await listSubmoduleFiles(storeDir, submodules, filter);
  const files = [...manifestFiles(await kept, extra), ...inSubmodules];
  await writeManifest(join(temporary, "manifest.json"), commit, files);
  const meta: Omit<BuiltTree, "directory"> = { key: request.key, commit, insideHead, insideTree };
  await writeFile(join(temporary, "meta.json"), JSON.stringify(meta));
}

/** What HEAD inside names, and the files of it. */
export interface InsideCommit {
  /** The real commit, or one of the files that the filter keeps. */
  readonly insideHead: string;
  readonly insideTree: string;
  /** A promise, since the list of all files is wanted last, for the manifest, where nothing is left out. */
  readonly kept: Promise<readonly TreeEntry[]>;
}

/** Finds or makes the commit that HEAD inside names. `below` is the tree that this one is laid over, null for a base. */
export async function insideCommit(
  storeDir: string,
  commit: string,
  filter: FileFilter,
  options: { readonly below: BuiltTree | null; readonly indexFile: string },
): Promise<InsideCommit> {
  const { below } = options;
  const isRealBelow = below === null || below.insideHead === below.commit;
  const listing = listTree(gitRunner(storeDir), commit);
  const real = () => gitText(storeDir, ["rev-parse", "--verify", `${commit}^{tree}`]);
  if (isWholeTree(filter) && isRealBelow) {
    // Its failure is seen by whoever awaits `kept`.
    listing.catch(() => undefined);
    return { kept: listing, insideHead: commit, insideTree: await real() };
  }
  const entries = await listing;
  const keeps = createFileFilter(filter);
  const kept = entries.filter((entry) => keeps(utf8Path(pathOfKey(entry.path)) ?? entry.path));
  if (kept.length === entries.length && isRealBelow) {
    return { kept: Promise.resolve(kept), insideHead: commit, insideTree: await real() };
  }
  const keptPaths = new Set(kept.map((entry) => entry.path));
  const left = entries.map((entry) => entry.path).filter((path) => !keptPaths.has(path));
  const insideTree = await treeWithout(storeDir, commit, left, options.indexFile);
  const message = `Files of ${commit}\n\n${kept.length} of ${entries.length} files, as the task's filter says.\n`;
  const insideHead = await commitTree(storeDir, {
    tree: insideTree,
    parents: below === null ? [] : [below.insideHead],
    message,
    dateFrom: commit,
  });
  return { kept: Promise.resolve(kept), insideHead, insideTree };
}

/** An extra file can be part of the commit: untracked in the person's index only, or taken in with their uncommitted changes. */
export async function withoutTracked(
  extra: readonly ExtraFile[],
  kept: Promise<readonly TreeEntry[]>,
): Promise<readonly ExtraFile[]> {
  if (extra.length === 0) return extra;
  const tracked = new Set((await kept).map(({ path }) => path));
  return extra.filter(({ path }) => !tracked.has(path));
}

/** Records of the manifest: tracked files (gitlinks are no files), then those from the work tree. */
export function manifestFiles(kept: readonly TreeEntry[], extra: readonly ExtraFile[]) {
  return [
    ...kept
      .filter((entry) => entry.type === "blob")
      .map(({ path, mode, oid, size }) => ({ path, mode, blob: oid, size: size ?? 0 })),
    ...extra.map(({ path, mode, blob, content }) => ({
      path,
      mode,
      blob,
      size: content.length,
      untracked: true,
    })),
  ];
}

/**
 * Gives all of a tree its owner and its files the commit's date. The date makes trees alike whenever they are built; it has to be
 * older than the index by more than git's second, or git would hash every file again ("racily clean").
 */
export async function finishTree(context: TreeContext, tree: string, commit: string): Promise<void> {
  const args = ["log", "-1", "--no-show-signature", "--format=%ct", commit];
  const dateSec = Math.min(Number(await gitText(context.gitDir, args)), Math.floor(Date.now() / 1000) - 5);
  // Directories that this process made have its umask; git's own have not.
  const script = `find "$0" -type d ! -perm 755 -print0 | xargs -0 -r chmod 755 --
find "$0" -path "$0/.git" -prune -o ! -type d -print0 | xargs -0 -r touch --no-dereference --date="@$1" --
if [ -n "$2" ]; then chown -R --no-dereference "$2" "$0"; fi`;
  const given = context.uid === null ? "" : owner(context.uid);
  await runTool("sh", ["-euc", script, tree, String(dateSec), given]);
}

async function writeExtra(tree: string, file: ExtraFile): Promise<void> {
  const full = bytesPath(tree, file.path);
  await mkdir(dirnameBytes(full), { recursive: true });
  if (file.mode === "120000") await symlink(file.content, full);
  else await writeFile(full, file.content, { mode: file.mode === "100755" ? 0o755 : 0o644, flag: "wx" });
}

/** A path below `directory` in the bytes that it has on disk. */
export function bytesPath(directory: string, path: string): Buffer {
  return joinPath(Buffer.from(directory), pathOfKey(path));
}

function dirnameBytes(path: Buffer): Buffer {
  return path.subarray(0, path.lastIndexOf("/"));
}

function owner(uid: number): string {
  return `${uid}:${uid}`;
}

/** A path as a pattern of info/exclude that matches it alone. LIMITATION: a newline cannot be written there. */
function escapePattern(path: string): string {
  return path.replace(/[\\*?[\]!# ]/g, "\\$&").replaceAll("\n", "?");
}
