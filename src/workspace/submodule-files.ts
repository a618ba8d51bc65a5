import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { FileFilter } from "../model/task.ts";
import { createFileFilter, isWholeTree } from "./filter-files.ts";
import { gitText } from "./git.ts";
import { gitRunner, listTree, type TreeEntry } from "./list-tree.ts";
import type { ManifestFile } from "./manifest.ts";
import { pathOfKey, utf8Path } from "./path-bytes.ts";

/** A submodule whose commit is in the object store. */
export interface SubmoduleTree {
  /** From the top of the repository; one character per byte. */
  readonly path: string;
  readonly commit: string;
}

/** The files of the submodules that a filter lets in, as the manifest names them: not part of the commit. */
export async function listSubmoduleFiles(
  storeDir: string,
  submodules: readonly SubmoduleTree[],
  filter: FileFilter,
): Promise<ManifestFile[]> {
  const files: ManifestFile[] = [];
  for (const submodule of chosen(submodules, filter)) {
    for (const entry of await keptEntries(storeDir, submodule, filter)) {
      const path = `${submodule.path}/${entry.path}`;
      files.push({ path, mode: entry.mode, blob: entry.oid, size: entry.size ?? 0, untracked: true });
    }
  }
  return files;
}

/**
 * Checks the submodules out into their directories in `tree`, as plain files: outer ones before those nested in them. The bytes are
 * those of the commit, as everywhere. `indexFile` is overwritten and removed.
 */
export async function checkOutSubmodules(
  storeDir: string,
  submodules: readonly SubmoduleTree[],
  places: { readonly tree: string; readonly indexFile: string; readonly filter: FileFilter },
): Promise<void> {
  const env = { GIT_INDEX_FILE: places.indexFile };
  for (const submodule of chosen(submodules, places.filter)) {
    const path = utf8Path(pathOfKey(submodule.path));
    if (path === null) continue;
    const kept = await keptEntries(storeDir, submodule, places.filter);
    if (kept.length === 0) continue;
    const lines = kept.map(({ mode, oid, path: file }) => `${mode} ${oid}\t${file}\0`).join("");
    const input = Buffer.from(lines, "latin1");
    await rm(places.indexFile, { force: true });
    await gitText(storeDir, ["update-index", "-z", "--index-info"], { env, input });
    const top = join(places.tree, path);
    await mkdir(top, { recursive: true, mode: 0o755 });
    const checkout = ["-c", "core.bare=false", "--work-tree", top, "checkout-index", "--all", "--quiet"];
    await gitText(storeDir, checkout, { env, umask: "022" });
  }
  await rm(places.indexFile, { force: true });
}

/** Whether a submodule can be laid out: its path has to be text, since it travels as an argument. */
export function canLayOut(path: string): boolean {
  return utf8Path(pathOfKey(path)) !== null;
}

function chosen(submodules: readonly SubmoduleTree[], filter: FileFilter): readonly SubmoduleTree[] {
  if (isWholeTree(filter)) return submodules;
  const keeps = createFileFilter(filter);
  const left = submodules.filter(({ path }) => !keeps(utf8Path(pathOfKey(path)) ?? path));
  return submodules.filter(
    ({ path }) => !left.some((other) => path === other.path || path.startsWith(`${other.path}/`)),
  );
}

async function keptEntries(
  storeDir: string,
  submodule: SubmoduleTree,
  filter: FileFilter,
): Promise<TreeEntry[]> {
  const entries = (await listTree(gitRunner(storeDir), submodule.commit)).filter(
    ({ type }) => type === "blob",
  );
  const keeps = createFileFilter(filter);
  return entries.filter(({ path }) => {
    const full = `${submodule.path}/${path}`;
    return keeps(utf8Path(pathOfKey(full)) ?? full);
  });
}
