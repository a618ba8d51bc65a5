/**
 * Finds what an attempt changed by walking the upper directory of its overlay: the cost follows the changes, not the repository.
 *
 * Theory of operation. The container is dead and the writable mount gone, so nothing moves any more. Names are bytes, every step is
 * an lstat, no link is followed, directories are taken from an explicit stack. A directory is read one of two ways:
 *
 *   upper    the usual one: entries of the upper directory are the changes, a character device 0/0 is a deletion
 *   merged   where the upper directory does not tell all: it is new, or it hides the layers below (opaque). Then all that the
 *            merged view shows counts as a change (equal content costs a hash, no more) and all it lacks as deleted
 *
 * The opaque marker is an attribute that Node cannot read. But in a directory that is not opaque every name of the layers shows in
 * the merged view unless the upper directory has an entry of that name: looking up one other name tells which it is.
 */
import type { Stats } from "node:fs";
import { lstat, opendir, readlink } from "node:fs/promises";
import type { ResultLimits } from "../../model/run.ts";
import { joinPath, pathKey, pathOfKey } from "../path-bytes.ts";
import { type Admission, createAdmission } from "./admission.ts";
import type { BaseTree } from "./base-tree.ts";
import type { Change, IgnoredCount } from "./change-source.ts";
import { createIgnoreRules, type IgnoreRules, MAX_IGNORE_FILE_BYTES } from "./ignore-rules.ts";
import {
  enterLayers,
  type LayerDirectories,
  type LayerListing,
  listFilesBelow,
  listLayers,
} from "./layer-listing.ts";
import type { ProblemList } from "./problem-list.ts";
import { openSafely, readSmallFile } from "./safe-file.ts";

export interface OverlayRequest {
  readonly upperDir: string;
  /** The merged view, mounted read-only, nosuid, nodev, noexec, nosymfollow. */
  readonly mergedDir: string;
  /** Topmost first. */
  readonly layers: readonly string[];
  readonly limits: ResultLimits;
  readonly exclude?: string;
}

export interface OverlayChanges {
  readonly changes: readonly Change[];
  readonly ignored: IgnoredCount;
}

/** One directory to be read. */
interface Frame {
  readonly path: Buffer;
  readonly view: "upper" | "merged";
  readonly layers: LayerDirectories;
  /** Ignored, but the base tracks files in it: those are taken, the rest is counted. */
  readonly isIgnored: boolean;
}

interface Walk {
  readonly request: OverlayRequest;
  readonly upper: Buffer;
  readonly merged: Buffer;
  readonly base: BaseTree;
  readonly problems: ProblemList;
  readonly admission: Admission;
  readonly rules: IgnoreRules;
  readonly ignored: IgnoredCount;
  readonly changes: Change[];
  readonly pending: Frame[];
  /** Names that may still be looked at before the tree counts as too large. */
  names: number;
}

const PARALLEL_LSTATS = 32;
/** Names looked at besides `maxFiles`: directories, ignored files, things that turn out unchanged. */
const EXTRA_NAMES = 1_000_000;
/** Names counted inside ignored directories; past it the count is a lower bound. */
const MAX_IGNORED_NAMES = 200_000;
const MAX_IGNORED_DEPTH = 64;

/** Lists the changes. What cannot go into a patch is added to `problems`; the list then is not complete. */
export async function walkOverlay(
  request: OverlayRequest,
  base: BaseTree,
  problems: ProblemList,
): Promise<OverlayChanges> {
  const merged = Buffer.from(request.mergedDir);
  const walk: Walk = {
    request,
    upper: Buffer.from(request.upperDir),
    merged,
    base,
    problems,
    admission: createAdmission(request.limits, problems, base, merged.length),
    rules: createIgnoreRules(request.exclude),
    ignored: { files: 0, bytes: 0 },
    changes: [],
    pending: [],
    names: request.limits.maxFiles + EXTRA_NAMES,
  };
  const layers = request.layers.map((layer) => Buffer.from(layer));
  walk.pending.push({ path: Buffer.alloc(0), view: "upper", layers, isIgnored: false });
  for (let frame = walk.pending.pop(); frame && !problems.isOver; frame = walk.pending.pop()) {
    await readFrame(walk, frame);
  }
  return { changes: walk.changes, ignored: walk.ignored };
}

async function readFrame(walk: Walk, frame: Frame): Promise<void> {
  const { layers } = frame;
  let view = frame.view;
  const [below, shown] = await Promise.all([listLayers(layers), listNames(walk, frame.path, view)]);
  let names = shown;
  if (names === null) return;
  if (view === "upper" && (await isOpaque(walk, frame.path, names, below))) {
    view = "merged";
    names = await listNames(walk, frame.path, view);
    if (names === null) return;
  }
  if (!frame.isIgnored && (below.has(".gitignore") || names.includes(".gitignore"))) {
    const file = joinPath(joinPath(walk.merged, frame.path), Buffer.from(".gitignore"));
    const content = await readSmallFile(file, MAX_IGNORE_FILE_BYTES);
    if (content) walk.rules.addFile(pathKey(frame.path), content);
  }
  if (view === "merged") {
    const present = new Set(names);
    for (const [name] of below) {
      if (!present.has(name)) await takeDeletion(walk, frame, layers, below, pathOfKey(name));
    }
  }
  const root = view === "upper" ? walk.upper : walk.merged;
  for (let start = 0; start < names.length && !walk.problems.isOver; start += PARALLEL_LSTATS) {
    const some = names.slice(start, start + PARALLEL_LSTATS).map(pathOfKey);
    const stats = await Promise.all(
      some.map((name) => lstat(joinPath(root, joinPath(frame.path, name))).catch(() => null)),
    );
    for (const [index, name] of some.entries()) {
      await takeEntry(walk, { ...frame, view }, below, name, stats[index] ?? null);
    }
  }
}

/** The sorted names (latin1) of a directory, or null where it is too large or cannot be read (and a problem was added). */
async function listNames(walk: Walk, path: Buffer, view: "upper" | "merged"): Promise<string[] | null> {
  const directory = joinPath(view === "upper" ? walk.upper : walk.merged, path);
  const names: string[] = [];
  try {
    // Name by name: a directory of ten million entries must not be held in memory to learn that it is too large.
    const entries = await opendir(directory, { encoding: "latin1", bufferSize: 256 });
    for await (const entry of entries) {
      walk.names -= 1;
      if (walk.names < 0) {
        const limit = walk.request.limits.maxFiles + EXTRA_NAMES;
        walk.problems.add(path, "too-many-files", `the tree holds more than ${limit} changed names`);
        return null;
      }
      names.push(entry.name);
    }
  } catch (error) {
    walk.problems.add(path, "unreadable", `the directory cannot be read (${errorCode(error)})`);
    return null;
  }
  return names.sort((a, b) => (a < b ? -1 : 1));
}

async function isOpaque(
  walk: Walk,
  path: Buffer,
  names: readonly string[],
  below: LayerListing,
): Promise<boolean> {
  // The top cannot be: it is made by the host. (And where nothing was written there may be no merged view to ask.)
  if (path.length === 0) return false;
  const present = new Set(names);
  for (const [name] of below) {
    if (present.has(name)) continue;
    const shown = await lstat(joinPath(walk.merged, joinPath(path, pathOfKey(name)))).catch(() => null);
    return shown === null;
  }
  return false; // Every name of the layers is replaced or deleted in the upper directory: nothing is left to hide.
}

async function takeEntry(
  walk: Walk,
  frame: Frame,
  below: LayerListing,
  name: Buffer,
  stat: Stats | null,
): Promise<void> {
  // The container's own repository at the top, a nested one further down: git itself never looks at what is named so.
  const key = pathKey(name);
  if (key === ".git" || walk.problems.isOver) return;
  const path = joinPath(frame.path, name);
  if (stat === null) {
    // Most likely its name is longer than the system can open. What it is cannot be known: a rule for either kind will do.
    const isIgnored =
      frame.isIgnored || [true, false].some((kind) => walk.rules.isIgnored(pathKey(path), kind));
    if (!isIgnored && walk.admission.admitPath(path)) {
      walk.problems.add(path, "unreadable", "it cannot be looked at");
    }
    return;
  }
  if (frame.view === "upper" && stat.isCharacterDevice() && stat.rdev === 0) {
    if (below.has(key)) await takeDeletion(walk, frame, frame.layers, below, name);
    return;
  }
  if (stat.isDirectory()) {
    await takeDirectory(walk, frame, below, name, path);
    return;
  }
  // A file or link in place of a directory takes that directory's files with it; the entry itself replaces a file.
  if (below.get(key) === "directory") await takeDeletion(walk, frame, frame.layers, below, name);
  if (frame.isIgnored || walk.rules.isIgnored(pathKey(path), false)) {
    const tracked = await walk.base.lookup(pathKey(path));
    if (tracked === null || !(stat.isFile() || stat.isSymbolicLink())) {
      walk.ignored.files += 1;
      walk.ignored.bytes += stat.isFile() ? stat.size : 0;
      return;
    }
  }
  if (stat.isFile()) takeFile(walk, path, stat);
  else if (stat.isSymbolicLink()) await takeSymlink(walk, path);
  else walk.admission.refuseSpecial(path, specialName(stat));
}

async function takeDirectory(
  walk: Walk,
  frame: Frame,
  below: LayerListing,
  name: Buffer,
  path: Buffer,
): Promise<void> {
  const kindBelow = below.get(pathKey(name));
  let isIgnored = frame.isIgnored;
  if (isIgnored || walk.rules.isIgnored(pathKey(path), true)) {
    const tracked = await walk.base.lookup(pathKey(path));
    if (tracked?.mode !== "040000") {
      if (kindBelow === "file") await takeDeletion(walk, frame, frame.layers, below, name);
      await countIgnored(walk, path);
      return;
    }
    isIgnored = true;
  }
  if (!walk.admission.admitPath(path)) return;
  if (kindBelow === "file" && walk.admission.admitDeletion(path))
    walk.changes.push({ path, kind: "deleted" });
  const layers = kindBelow === "directory" ? await enterLayers(frame.layers, name) : [];
  const view = layers.length > 0 ? frame.view : "merged";
  walk.pending.push({ path, view, layers, isIgnored });
}

/** Reports what the layers have at a name as deleted; of a directory every file in it. */
async function takeDeletion(
  walk: Walk,
  frame: Frame,
  layers: LayerDirectories,
  below: LayerListing,
  name: Buffer,
): Promise<void> {
  const path = joinPath(frame.path, name);
  if (pathKey(name) === ".git") return;
  if (below.get(pathKey(name)) !== "directory") {
    if (walk.admission.admitDeletion(path)) walk.changes.push({ path, kind: "deleted" });
    return;
  }
  if (frame.isIgnored || walk.rules.isIgnored(pathKey(path), true)) {
    // A prepared directory that nobody tracks can be large, and its end changes nothing.
    if ((await walk.base.lookup(pathKey(path)))?.mode !== "040000") return;
  }
  const limit = walk.request.limits.maxFiles + 1;
  for (const file of await listFilesBelow(await enterLayers(layers, name), path, limit)) {
    if (!walk.admission.admitDeletion(file)) return;
    walk.changes.push({ path: file, kind: "deleted" });
  }
}

function takeFile(walk: Walk, path: Buffer, stat: Stats): void {
  if (!walk.admission.admitPath(path) || !walk.admission.admitFile(path, stat.size)) return;
  walk.changes.push({
    path,
    kind: "file",
    mode: (stat.mode & 0o100) !== 0 ? "100755" : "100644",
    size: stat.size,
    content: { open: () => openSafely(joinPath(walk.merged, path), stat.size) },
  });
}

async function takeSymlink(walk: Walk, path: Buffer): Promise<void> {
  if (!walk.admission.admitPath(path)) return;
  const target = await readlink(joinPath(walk.merged, path), { encoding: "buffer" }).catch(() => null);
  if (target === null) walk.problems.add(path, "unreadable", "the link cannot be read");
  else if (await walk.admission.admitSymlink(path, target))
    walk.changes.push({ path, kind: "symlink", target });
}

/** Counts the files of an ignored directory, up to a budget. Nothing in it can fail the import. */
async function countIgnored(walk: Walk, top: Buffer): Promise<void> {
  const pending = [{ path: top, depth: 0 }];
  for (let next = pending.pop(); next; next = pending.pop()) {
    try {
      const directory = joinPath(walk.upper, next.path);
      for await (const entry of await opendir(directory, { encoding: "latin1", bufferSize: 256 })) {
        if (walk.ignored.files >= MAX_IGNORED_NAMES) return;
        const path = joinPath(next.path, pathOfKey(entry.name));
        if (entry.isDirectory() && next.depth < MAX_IGNORED_DEPTH)
          pending.push({ path, depth: next.depth + 1 });
        if (entry.isDirectory() || entry.isCharacterDevice()) continue;
        walk.ignored.files += 1;
        if (entry.isFile()) walk.ignored.bytes += (await lstat(joinPath(walk.upper, path))).size;
      }
    } catch {
      // An ignored directory that cannot be read is not counted.
    }
  }
}

function specialName(stat: Stats): string {
  if (stat.isFIFO()) return "fifo";
  if (stat.isSocket()) return "socket";
  return "device";
}

function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
