/**
 * First half of the tar import: takes the stream in, hashing each file as it passes. Of a file that equals the manifest only the
 * name is kept; the rest goes to the spool, since a `.gitignore` that comes later in the stream may still rule it out.
 *
 * What the ignore rules seen so far rule out is spooled up to a small budget only: a container can have gigabytes of dependencies.
 * LIMITATION: where a `.gitignore` further down takes such a file back in, and it came before and past the budget, the import is
 * refused (`unreadable`); so it is where a hard link's first name lies in a git directory. Engines send the names of a directory in order, so that `.gitignore` is early.
 */
import type { ResultLimits } from "../../model/run.ts";
import { pathKey, showPath, splitPath } from "../path-bytes.ts";
import { blobHash } from "./admission.ts";
import { createIgnoreRules, MAX_IGNORE_FILE_BYTES } from "./ignore-rules.ts";
import type { ManifestEntry } from "./manifest-reader.ts";
import type { ProblemList } from "./problem-list.ts";
import type { Spool, Spooled } from "./spool.ts";
import { readTar, type TarEntry } from "./tar-reader.ts";

/** One thing found in the workspace. */
export type Found =
  | {
      readonly kind: "file";
      readonly mode: "100644" | "100755";
      readonly size: number;
      readonly oid: string;
      /** Null: its bytes are in the object store, or were not kept (`isDropped`). */
      readonly place: Spooled | null;
      readonly isDropped: boolean;
    }
  | { readonly kind: "symlink"; readonly target: Buffer }
  | { readonly kind: "special"; readonly what: string }
  | { readonly kind: "directory" };

export interface Collected {
  /** By latin1 path. */
  readonly found: Map<string, Found>;
  /** Content of each `.gitignore`, by latin1 path of its directory. */
  readonly ignoreFiles: Map<string, Buffer>;
}

export interface CollectRequest {
  readonly tar: AsyncIterable<Uint8Array | string>;
  /** Leading path of every entry besides `./`, e.g. `workspace`. */
  readonly prefix: string;
  readonly manifest: ReadonlyMap<string, ManifestEntry>;
  readonly isTracked: (path: string) => boolean;
  readonly idLength: number;
  readonly limits: ResultLimits;
  readonly exclude?: string;
}

const SYSTEM_PATH_BYTES = 4095;
const SMALL_BYTES = 1024 * 1024;
const MAX_IGNORED_SPOOL_BYTES = 64 * 1024 * 1024;
const MAX_IGNORE_FILES = 2000;
const EXTRA_ENTRIES = 1_000_000;
/** Bytes read off the stream, ignored files included, as a multiple of what a patch may hold. */
const STREAM_FACTOR = 16;

/** Reads the stream to its end, or to the first limit it breaks. */
export async function collectTar(
  request: CollectRequest,
  spool: Spool,
  problems: ProblemList,
): Promise<Collected> {
  const { limits, manifest } = request;
  const found = new Map<string, Found>();
  const ignoreFiles = new Map<string, Buffer>();
  const provisional = createIgnoreRules(request.exclude);
  const maxEntries = limits.maxFiles + manifest.size + EXTRA_ENTRIES;
  const maxStreamBytes = limits.maxTotalBytes * STREAM_FACTOR;
  const maxPathBytes = Math.min(limits.maxPathBytes, SYSTEM_PATH_BYTES);
  const outOfBounds = new Set<string>();
  let entries = 0;
  let streamBytes = 0;
  let ignoredBytes = 0;
  let takenBytes = 0;

  /** Whether the content is worth keeping, going by the rules known by now. */
  function mayKeep(path: Buffer, key: string, size: number): boolean {
    if (!request.isTracked(key) && provisional.isIgnored(key, false)) {
      ignoredBytes += size;
      return ignoredBytes <= MAX_IGNORED_SPOOL_BYTES && size <= limits.maxFileBytes;
    }
    if (size > limits.maxFileBytes) {
      problems.add(path, "too-many-bytes", `${size} bytes, the limit for one file is ${limits.maxFileBytes}`);
    }
    return !problems.isOver;
  }

  async function takeFile(entry: TarEntry, path: Buffer, key: string): Promise<void> {
    const mode = (entry.mode & 0o100) !== 0 ? "100755" : "100644";
    const before = manifest.get(key);
    const hash = blobHash(entry.size, request.idLength);
    const start = spool.bytes;
    const isKept = mayKeep(path, key, entry.size);
    if (problems.isOver) return;
    const isSmall = entry.size <= SMALL_BYTES;
    const chunks: Buffer[] = [];
    for await (const chunk of entry.content()) {
      hash.update(chunk);
      if (isSmall) chunks.push(chunk);
      else if (isKept) await spool.append(chunk);
    }
    const oid = hash.digest("hex");
    const isUnchanged = before?.blob === oid;
    const common = { kind: "file", mode, size: entry.size, oid } as const;
    if (isIgnoreFile(key) && entry.size <= MAX_IGNORE_FILE_BYTES && ignoreFiles.size < MAX_IGNORE_FILES) {
      const directory = key.slice(0, Math.max(0, key.length - ".gitignore".length - 1));
      ignoreFiles.set(directory, Buffer.concat(chunks));
      provisional.addFile(directory, Buffer.concat(chunks));
    }
    if (isUnchanged && !before.untracked) {
      spool.rewind(start);
      found.set(key, { ...common, place: null, isDropped: false });
      return;
    }
    if (isSmall && isKept) for (const chunk of chunks) await spool.append(chunk);
    const place = isKept ? { offset: start, size: entry.size } : null;
    found.set(key, { ...common, place, isDropped: !isKept });
    if (!isKept || provisional.isIgnored(key, false)) return;
    takenBytes += entry.size;
    if (takenBytes > limits.maxTotalBytes) {
      problems.add(
        path,
        "too-many-bytes",
        `the changed files hold more than ${limits.maxTotalBytes} bytes together`,
      );
    }
  }

  /**
   * Whether a path is too long or too deep to be kept in memory at all; said once for each place where that begins, and not where
   * it lies in an ignored directory.
   */
  function isOutOfBounds(path: Buffer): boolean {
    const parts = path.length > maxPathBytes ? splitPath(path.subarray(0, maxPathBytes)) : splitPath(path);
    const isTooDeep = parts.length > limits.maxDepth;
    if (path.length <= maxPathBytes && !isTooDeep) return false;
    const kept = isTooDeep ? parts.slice(0, limits.maxDepth) : parts.slice(0, -1);
    const above = kept.map(pathKey).join("/");
    if (outOfBounds.has(above) || (above !== "" && provisional.isIgnored(above, true))) return true;
    outOfBounds.add(above);
    if (isTooDeep) problems.add(path, "too-deep", `more than ${limits.maxDepth} directories deep`);
    else problems.add(path, "path-too-long", `${path.length} bytes, the limit is ${maxPathBytes}`);
    return true;
  }

  async function take(entry: TarEntry, path: Buffer): Promise<void> {
    const key = pathKey(path);
    if (entry.kind === "file") return takeFile(entry, path, key);
    if (entry.kind === "directory") found.set(key, { kind: "directory" });
    else if (entry.kind === "symlink") found.set(key, { kind: "symlink", target: entry.target });
    else if (entry.kind === "special") found.set(key, { kind: "special", what: entry.what });
    else {
      const target = relativePath(entry.target, request.prefix);
      const original = target && found.get(pathKey(target));
      if (original?.kind === "file") found.set(key, original);
      else
        problems.add(
          path,
          "unreadable",
          `a hard link to ${showPath(entry.target)}, which is not in the archive`,
        );
    }
  }

  for await (const entry of readTar(request.tar)) {
    entries += 1;
    streamBytes += entry.size;
    const path = relativePath(entry.path, request.prefix);
    if (path === null) {
      problems.add(entry.path, "bad-name", "the archive names a path outside the workspace");
    } else if (entries > maxEntries) {
      problems.add(path, "too-many-files", `the workspace holds more than ${maxEntries} names`);
    } else if (streamBytes > maxStreamBytes) {
      problems.add(path, "too-many-bytes", `the workspace holds more than ${maxStreamBytes} bytes`);
    } else if (path.length > 0 && !isInsideGit(path) && !isOutOfBounds(path)) {
      await take(entry, path);
    }
    if (problems.isOver) break;
  }
  return { found, ignoreFiles };
}

function isInsideGit(path: Buffer): boolean {
  const key = `/${pathKey(path)}/`;
  return key.includes("/.git/");
}

function isIgnoreFile(key: string): boolean {
  return key === ".gitignore" || key.endsWith("/.gitignore");
}

/** The entry's path inside the workspace (empty for its top), or null where it has a part that no directory lists. */
function relativePath(path: Buffer, prefix: string): Buffer | null {
  let key = pathKey(path);
  while (key.startsWith("./")) key = key.slice(2);
  if (prefix !== "" && (key === prefix || key.startsWith(`${prefix}/`))) key = key.slice(prefix.length + 1);
  if (key.endsWith("/")) key = key.slice(0, -1);
  if (key === "" || key === ".") return Buffer.alloc(0);
  if (key.split("/").some((part) => part === "" || part === "." || part === "..")) return null;
  return Buffer.from(key, "latin1");
}
