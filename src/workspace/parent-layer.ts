/**
 * Layers: what the patches of a task's dependencies changed, as a small directory to lie over the base tree.
 *
 * Theory of operation: the two trees are compared, changed files are checked out, and what is gone is marked as overlayfs wants
 * it: a character device 0/0 ("whiteout"). Git has no empty directories, so a directory whose last file went gets one whiteout itself.
 * A file where a directory was, or the other way round, needs no mark: the upper one of two kinds hides the lower. Under `.git` lie the
 * new objects, a new branch head, and the base's index with the changed entries put in without a stat: the first `git status`
 * inside hashes those few and no others. Without root no device can be made; the list in `removed` says the same to the copy driver.
 */
import { chmod, copyFile, link, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { FileFilter } from "../model/task.ts";
import { baseTreesDir } from "../util/state-layout.ts";
import {
  type AddedFiles,
  type BuiltTree,
  bytesPath,
  FORMAT_VERSION,
  finishTree,
  insideCommit,
  manifestFiles,
  readBuiltTree,
  type TreeContext,
  treeDirectory,
  treeKey,
  withoutTracked,
} from "./base-tree.ts";
import type { ExtraFile } from "./extra-files.ts";
import { gitBytes, gitText } from "./git.ts";
import { packObjects } from "./inside-repository.ts";
import { splitNul } from "./list-tree.ts";
import { writeManifest } from "./manifest.ts";
import { runTool } from "./run-tool.ts";
import { listSubmoduleFiles } from "./submodule-files.ts";

/** File beside a layer's tree: paths that are gone, NUL-ended. */
export const REMOVED_FILE = "removed";

interface TreeChange {
  readonly path: string;
  readonly newMode: string;
  readonly newOid: string;
  readonly isOldDirectory: boolean;
}

/** Returns the layer that turns `base` into `commit`, building it where it is not there yet. */
export async function ensureParentLayer(
  context: TreeContext,
  base: BuiltTree,
  commit: string,
  filter: FileFilter,
  added: AddedFiles,
): Promise<BuiltTree> {
  const key = treeKey({ version: FORMAT_VERSION, kind: "layer", base: base.key, commit });
  const directory = join(baseTreesDir(context.cacheDir), key);
  await context.once.ensure({
    directory,
    build: (temporary) => buildLayer(context, temporary, { key, base, commit, filter, added }),
    // Small enough to be built again after a reboot.
    intact: () => Promise.resolve(false),
  });
  return readBuiltTree(directory);
}

async function buildLayer(
  context: TreeContext,
  temporary: string,
  request: {
    readonly key: string;
    readonly base: BuiltTree;
    readonly commit: string;
    readonly filter: FileFilter;
    readonly added: AddedFiles;
  },
): Promise<void> {
  const { gitDir: storeDir } = context;
  const { base, commit } = request;
  const { submodules } = request.added;
  const scratchIndex = join(temporary, "index");
  const tree = join(temporary, "tree");
  const { kept, insideHead, insideTree } = await insideCommit(storeDir, commit, request.filter, {
    below: base,
    indexFile: scratchIndex,
  });
  await rm(scratchIndex, { force: true });
  const extra = await withoutTracked(request.added.extra, kept);
  const insideGit = join(tree, ".git");
  await mkdir(join(insideGit, "objects/pack"), { recursive: true, mode: 0o755 });
  const changes = compareTrees(storeDir, base.insideTree, insideTree);
  const meta: Omit<BuiltTree, "directory"> = { key: request.key, commit, insideHead, insideTree };
  // Some fifteen short processes: those that do not need each other run side by side.
  await Promise.all([
    changes.then((found) => checkOutChanges(storeDir, found, { tree, indexFile: scratchIndex })),
    changes.then((found) => markRemoved(context, temporary, tree, removedPaths(found, extra))),
    changes.then((found) => layInsideGit(context, insideGit, { base, insideHead, changes: found })),
    packObjects(storeDir, [insideHead, `^${base.insideHead}`], insideGit),
    Promise.all([kept, listSubmoduleFiles(storeDir, submodules, request.filter)]).then(([entries, inside]) =>
      writeManifest(join(temporary, "manifest.json"), commit, [...manifestFiles(entries, extra), ...inside]),
    ),
    writeFile(join(temporary, "meta.json"), JSON.stringify(meta)),
  ]);
  await rm(scratchIndex, { force: true });
  await finishTree(context, tree, commit);
}

async function checkOutChanges(
  storeDir: string,
  changes: readonly TreeChange[],
  places: { readonly tree: string; readonly indexFile: string },
): Promise<void> {
  const present = changes.filter(({ newMode }) => newMode !== "000000" && newMode !== "040000");
  if (present.length === 0) return;
  const env = { GIT_INDEX_FILE: places.indexFile };
  await gitText(storeDir, ["update-index", "-z", "--index-info"], { env, input: indexInfo(present) });
  const checkout = [
    "-c",
    "core.bare=false",
    "--work-tree",
    places.tree,
    "checkout-index",
    "--all",
    "--quiet",
  ];
  await gitText(storeDir, checkout, { env, umask: "022" });
}

async function markRemoved(
  context: TreeContext,
  temporary: string,
  tree: string,
  removed: readonly string[],
): Promise<void> {
  const list = Buffer.from(removed.map((path) => `${path}\0`).join(""), "latin1");
  await writeFile(join(temporary, REMOVED_FILE), list);
  if (context.uid !== null) await makeWhiteouts(join(temporary, "whiteout"), tree, removed);
}

async function compareTrees(storeDir: string, from: string, to: string): Promise<TreeChange[]> {
  const args = ["diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--no-abbrev", from, to];
  const records = splitNul(await gitBytes(storeDir, args));
  const changes: TreeChange[] = [];
  for (let at = 0; at + 1 < records.length; at += 2) {
    const [oldMode = "", newMode = "", , newOid = ""] = (records[at] ?? "").slice(1).split(" ");
    changes.push({
      path: records[at + 1] ?? "",
      newMode,
      newOid,
      isOldDirectory: oldMode === "040000",
    });
  }
  return changes;
}

/** Topmost paths that are gone and have nothing in their place. */
function removedPaths(changes: readonly TreeChange[], extra: readonly ExtraFile[]): string[] {
  const present = new Set(changes.filter(({ newMode }) => newMode !== "000000").map(({ path }) => path));
  const gone = changes.filter(({ path, newMode }) => newMode === "000000" && !present.has(path));
  // A directory in which an untracked file of the snapshot lies stays, less its tracked files.
  const marked = new Set(
    gone
      .filter(
        ({ path, isOldDirectory }) =>
          !isOldDirectory || !extra.some((file) => file.path.startsWith(`${path}/`)),
      )
      .map(({ path }) => path),
  );
  const files = new Set(
    changes.filter(({ newMode }) => newMode !== "000000" && newMode !== "040000").map(({ path }) => path),
  );
  const isBelow = (path: string) => ancestors(path).some((at) => marked.has(at) || files.has(at));
  return [...marked].filter((path) => !isBelow(path));
}

function ancestors(path: string): string[] {
  const found: string[] = [];
  for (let cut = path.lastIndexOf("/"); cut > 0; cut = path.lastIndexOf("/", cut - 1)) {
    found.push(path.slice(0, cut));
  }
  return found;
}

/** One device node, then links to it: a process per removed file would cost more than the files. */
async function makeWhiteouts(seed: string, tree: string, removed: readonly string[]): Promise<void> {
  if (removed.length === 0) return;
  const linksPerNode = 30_000;
  for (const [index, path] of removed.entries()) {
    if (index % linksPerNode === 0) {
      await rm(seed, { force: true });
      await runTool("mknod", [seed, "c", "0", "0"]);
    }
    const full = bytesPath(tree, path);
    await mkdir(full.subarray(0, full.lastIndexOf("/")), { recursive: true, mode: 0o755 });
    await link(seed, full);
  }
  await rm(seed, { force: true });
}

async function layInsideGit(
  context: TreeContext,
  insideGit: string,
  content: { readonly base: BuiltTree; readonly insideHead: string; readonly changes: readonly TreeChange[] },
): Promise<void> {
  const { base, insideHead, changes } = content;
  const index = join(insideGit, "index");
  const head = join(insideGit, "refs/heads/work");
  await mkdir(dirname(head), { recursive: true, mode: 0o755 });
  await writeFile(head, `${insideHead}\n`);
  await copyFile(join(treeDirectory(base), ".git/index"), index);
  await chmod(index, 0o644);
  const entries = changes.filter(({ newMode, isOldDirectory }) =>
    newMode === "000000" ? !isOldDirectory : newMode !== "040000",
  );
  if (entries.length === 0) return;
  await gitText(context.gitDir, ["update-index", "-z", "--index-info"], {
    env: { GIT_INDEX_FILE: index },
    input: indexInfo(entries),
  });
}

/** Input of `update-index --index-info`, removals first: a file may take the name of a directory that goes. */
function indexInfo(changes: readonly TreeChange[]): Buffer {
  const line = ({ newMode, newOid, path }: TreeChange) =>
    `${newMode === "000000" ? "0" : newMode} ${newOid}\t${path}\0`;
  const isGone = ({ newMode }: TreeChange) => newMode === "000000";
  const ordered = [...changes.filter(isGone), ...changes.filter((change) => !isGone(change))];
  return Buffer.from(ordered.map(line).join(""), "latin1");
}
