/**
 * Files as they lie on disk, by kind, executable bit and bytes. Unlike a comparison by git this asks no attribute and runs no filter, so
 * it still tells the two sides of an apply apart when the attributes themselves are among what changes.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";
import { pathOfKey } from "../path-bytes.ts";
import type { Beneath } from "./beneath.ts";

/** The fingerprint of a path below an opened directory; null where no regular file or link lies there. */
export async function fingerprint(tree: Beneath, path: string): Promise<string | null> {
  const kind = await tree.kindOf(pathOfKey(path));
  if (kind !== "file" && kind !== "symlink") return null;
  return tree.use(pathOfKey(path), (place) => (kind === "symlink" ? ofLink(place) : ofFile(place)));
}

/** Fingerprints of those paths that have one. */
export async function fingerprints(
  tree: Beneath,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const path of paths) {
    const print = await fingerprint(tree, path);
    if (print !== null) found.set(path, print);
  }
  return found;
}

async function ofLink(place: Buffer): Promise<string> {
  const target = await readlink(place, { encoding: "buffer" });
  return `link ${createHash("sha256").update(target).digest("hex")}`;
}

async function ofFile(place: Buffer): Promise<string> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
  const [handle, { mode }] = [await open(place, flags), await lstat(place)];
  try {
    const hash = createHash("sha256");
    for await (const chunk of handle.createReadStream({ autoClose: false })) hash.update(chunk as Buffer);
    return `${(mode & 0o100) === 0 ? "file" : "program"} ${hash.digest("hex")}`;
  } finally {
    await handle.close();
  }
}
