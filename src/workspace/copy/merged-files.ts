import type { Stats } from "node:fs";
import { lstat, readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { REMOVED_FILE } from "../parent-layer.ts";
import { joinPath, pathKey } from "../path-bytes.ts";

/** One thing that the stacked layers show. */
export interface MergedEntry {
  /** Below the top; empty for the top itself. */
  readonly path: Buffer;
  /** Where it lies on disk. */
  readonly source: Buffer;
  readonly stats: Stats;
}

/**
 * Walks layers as overlayfs would show them stacked, topmost first, directories before what is in them. LIMITATION: opaque directories
 * are not known; bulkhead's own layers have none.
 */
export async function* mergedFiles(layers: readonly string[]): AsyncGenerator<MergedEntry> {
  const removed = await Promise.all(layers.map(readRemoved));
  const tops = layers.map((layer, depth) => ({ directory: Buffer.from(layer), depth }));
  const [first] = tops;
  if (!first) return;
  yield { path: Buffer.alloc(0), source: first.directory, stats: await lstat(first.directory) };
  yield* walk(Buffer.alloc(0), tops, removed);
}

interface LayerDirectory {
  readonly directory: Buffer;
  readonly depth: number;
}

async function* walk(
  path: Buffer,
  directories: readonly LayerDirectory[],
  removed: ReadonlyArray<ReadonlySet<string>>,
): AsyncGenerator<MergedEntry> {
  const names = new Map<string, Buffer>();
  for (const { directory } of directories) {
    for (const name of await readdir(directory, { encoding: "buffer" })) names.set(pathKey(name), name);
  }
  for (const key of names.keys()) {
    const name = names.get(key);
    if (!name) continue;
    const found = await resolve(joinPath(path, name), name, directories, removed);
    if (!found) continue;
    yield found.entry;
    if (found.below.length > 0) yield* walk(found.entry.path, found.below, removed);
  }
}

/** What shows under a name: the topmost entry, and the directories that merge with it if it is one. */
async function resolve(
  path: Buffer,
  name: Buffer,
  directories: readonly LayerDirectory[],
  removed: ReadonlyArray<ReadonlySet<string>>,
): Promise<{ entry: MergedEntry; below: LayerDirectory[] } | null> {
  let entry: MergedEntry | undefined;
  const below: LayerDirectory[] = [];
  const key = pathKey(path);
  for (const { directory, depth } of directories) {
    if (removed.slice(0, depth).some((paths) => paths.has(key))) break;
    const source = joinPath(directory, name);
    const stats = await lstat(source).catch(() => null);
    if (stats === null) continue;
    if (isWhiteout(stats)) break;
    if (!stats.isDirectory()) return { entry: entry ?? { path, source, stats }, below };
    entry ??= { path, source, stats };
    below.push({ directory: source, depth });
  }
  return entry ? { entry, below } : null;
}

function isWhiteout(stats: Stats): boolean {
  return stats.isCharacterDevice() && stats.rdev === 0;
}

/** What a layer built without root removes: it could not make whiteouts. */
async function readRemoved(layer: string): Promise<ReadonlySet<string>> {
  const bytes = await readFile(join(dirname(layer), REMOVED_FILE)).catch(() => Buffer.alloc(0));
  return new Set(bytes.toString("latin1").split("\0"));
}
