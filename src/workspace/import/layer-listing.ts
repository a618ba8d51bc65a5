/**
 * What an attempt's directory looked like before it was changed: the listing of the stacked read-only layers.
 *
 * LIMITATION: a layer made by another container (a prepared layer) can hide a directory of the layers below with an opaque marker,
 * an attribute that cannot be read from here. Its hidden files then count as there before, and as deleted once an attempt changes
 * something in the same directory. Only tracked files matter for that.
 */
import { lstat, readdir } from "node:fs/promises";
import { joinPath, pathKey } from "../path-bytes.ts";

export type LayerKind = "directory" | "file";

/** Kinds by latin1 name. */
export type LayerListing = ReadonlyMap<string, LayerKind>;

/** The directories, topmost first, that together make up one directory of the snapshot. */
export type LayerDirectories = readonly Buffer[];

/** Lists the union of the directories: a name of an upper one hides that of a lower, a whiteout hides it altogether. */
export async function listLayers(directories: LayerDirectories): Promise<LayerListing> {
  const seen = new Map<string, LayerKind | "hidden">();
  for (const directory of directories) {
    for (const entry of await readdir(directory, { withFileTypes: true, encoding: "buffer" })) {
      const name = pathKey(entry.name);
      if (seen.has(name)) continue;
      seen.set(name, entry.isDirectory() ? "directory" : entry.isCharacterDevice() ? "hidden" : "file");
    }
  }
  const listing = new Map<string, LayerKind>();
  for (const [name, kind] of seen) if (kind !== "hidden") listing.set(name, kind);
  return listing;
}

/** The directories that make up a child directory: those on top of the first layer where the name is something else. */
export async function enterLayers(directories: LayerDirectories, name: Buffer): Promise<LayerDirectories> {
  const inside: Buffer[] = [];
  for (const directory of directories) {
    const child = joinPath(directory, name);
    const isDirectory = await lstat(child).then(
      (stat) => stat.isDirectory(),
      () => null, // Not in this layer.
    );
    if (isDirectory) inside.push(child);
    else if (isDirectory === false) break;
  }
  return inside;
}

/** Every file and link below a directory of the snapshot, without recursion and at most `limit` of them. */
export async function listFilesBelow(
  directories: LayerDirectories,
  path: Buffer,
  limit: number,
): Promise<Buffer[]> {
  const files: Buffer[] = [];
  const pending: Array<{ directories: LayerDirectories; path: Buffer }> = [{ directories, path }];
  for (let next = pending.pop(); next && files.length < limit; next = pending.pop()) {
    for (const [key, kind] of await listLayers(next.directories)) {
      const name = Buffer.from(key, "latin1");
      if (key === ".git") continue;
      const child = joinPath(next.path, name);
      if (kind === "file") files.push(child);
      else pending.push({ directories: await enterLayers(next.directories, name), path: child });
    }
  }
  return files;
}
