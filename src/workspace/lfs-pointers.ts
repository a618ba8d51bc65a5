import { type GitRunner, readBlobs, type TreeEntry } from "./list-tree.ts";
import { pathOfKey, showPath } from "./path-bytes.ts";

/** A pointer is shorter than this by the format's own rule. */
const MAX_POINTER_BYTES = 1024;
const MIN_POINTER_BYTES = 100;
/** Blobs looked at; past it the count is a lower bound. */
const MAX_CANDIDATES = 50_000;
const POINTER =
  /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:.*\n)*oid sha256:[0-9a-f]{64}\nsize \d+\n/;
const MAX_NAMED = 3;

/**
 * Says which files of a commit are Git LFS pointers. Attempts get the pointers: the commit's own bytes. LIMITATION: the content is not
 * put in their place even where `.git/lfs/objects` has it, since a file that an attempt changed would then come out as its content,
 * and be committed past LFS.
 */
export async function describeLfs(run: GitRunner, entries: readonly TreeEntry[]): Promise<string[]> {
  const candidates = entries
    .filter(({ type, size }) => type === "blob" && size !== null && isPointerSize(size))
    .slice(0, MAX_CANDIDATES);
  const contents = await readBlobs(
    run,
    candidates.map(({ oid }) => oid),
  );
  const pointers = candidates.filter((_, index) => POINTER.test(contents[index]?.toString("latin1") ?? ""));
  if (pointers.length === 0) return [];
  const names = pointers.slice(0, MAX_NAMED).map(({ path }) => showPath(pathOfKey(path)));
  const more = pointers.length > MAX_NAMED ? ", ..." : "";
  const are =
    pointers.length === 1 ? "1 file is a Git LFS pointer" : `${pointers.length} files are Git LFS pointers`;
  return [`${are} in snapshots, not the content behind it: ${names.join(", ")}${more}`];
}

function isPointerSize(size: number): boolean {
  return size >= MIN_POINTER_BYTES && size < MAX_POINTER_BYTES;
}
