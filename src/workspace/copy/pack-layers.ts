import { createReadStream } from "node:fs";
import { readFile, readlink } from "node:fs/promises";
import { Readable } from "node:stream";
import { type MergedEntry, mergedFiles } from "./merged-files.ts";
import { TAR_BLOCK_BYTES, tarEnd, tarHeader, tarPadding } from "./tar-format.ts";

/** Archives grow in chunks of about this size: a chunk per small file would cost more than the file. */
const CHUNK_BYTES = 256 * 1024;

/** Streams stacked layers as one tar archive in which everything belongs to `uid`. The first entry is the top directory. */
export function packLayers(layers: readonly string[], uid: number): Readable {
  return Readable.from(inChunks(archive(layers, uid)), { objectMode: false, highWaterMark: CHUNK_BYTES });
}

async function* archive(layers: readonly string[], uid: number): AsyncGenerator<Buffer> {
  for await (const entry of mergedFiles(layers)) yield* archiveEntry(entry, uid);
  yield tarEnd();
}

async function* archiveEntry({ path, source, stats }: MergedEntry, uid: number): AsyncGenerator<Buffer> {
  const name = Buffer.concat([Buffer.from("./"), path]);
  const common = { uid, mode: stats.mode & 0o7777, mtimeSec: Math.floor(stats.mtimeMs / 1000), size: 0 };
  if (stats.isDirectory()) {
    const directory = path.length === 0 ? name : Buffer.concat([name, Buffer.from("/")]);
    yield tarHeader({ ...common, name: directory, type: "directory" });
  } else if (stats.isSymbolicLink()) {
    const target = await readlink(source, { encoding: "buffer" });
    yield tarHeader({ ...common, name, type: "symlink", target });
  } else if (stats.isFile()) {
    yield tarHeader({ ...common, name, type: "file", size: stats.size });
    if (stats.size <= CHUNK_BYTES) yield await readFile(source);
    else yield* createReadStream(source) as AsyncIterable<Buffer>;
    yield tarPadding(stats.size);
  }
}

/** Joins small pieces. */
async function* inChunks(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  for await (const piece of pieces) {
    held.push(piece);
    heldBytes += piece.length;
    if (heldBytes < CHUNK_BYTES - TAR_BLOCK_BYTES) continue;
    yield Buffer.concat(held);
    held = [];
    heldBytes = 0;
  }
  if (heldBytes > 0) yield Buffer.concat(held);
}
