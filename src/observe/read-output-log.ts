/**
 * Reads an output log while it is written or after (see `output-log.ts` for the files). Positions are places in the whole output,
 * so that what was cut is told as a mark, and nothing is shown twice when the writer joins the segments to the head.
 */
import { type FileHandle, open } from "node:fs/promises";
import { cutMark, listTailSegments } from "./bounded-file.ts";

export interface OutputReader {
  /** What has come since the last call, in pieces; nothing where there is no file yet. */
  readNew(): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

interface OpenFile {
  readonly file: FileHandle;
  position: number;
}

/** Opens a reader at the beginning. The log may not exist yet. */
export function createOutputReader(path: string): OutputReader {
  let head: OpenFile | null = null;
  /** Set once anything was read from a segment: `start` is its place in the whole output. */
  let tail: (OpenFile & { readonly start: number; readonly headBytes: number }) | null = null;

  /** Reads what segments hold; false where there are none (any more). */
  async function* readSegments(): AsyncGenerator<Buffer, boolean> {
    const segments = await listTailSegments(path);
    for (const segment of segments) {
      if (tail !== null && segment.start <= tail.start) continue;
      if (tail !== null) yield* readOn(tail, Number.POSITIVE_INFINITY);
      const seen: number = tail === null ? segment.headBytes : tail.start + tail.position;
      const file = await openIfThere(segment.path);
      // Removed since it was listed: the next one's mark counts it as cut.
      if (file === null) continue;
      await tail?.file.close();
      tail = { file, position: 0, start: segment.start, headBytes: segment.headBytes };
      if (segment.start > seen) yield Buffer.from(cutMark(segment.start - seen));
    }
    if (tail !== null) yield* readOn(tail, Number.POSITIVE_INFINITY);
    return segments.length > 0;
  }

  return {
    async *readNew() {
      if (head === null) {
        const file = await openIfThere(path);
        if (file === null) return;
        head = { file, position: 0 };
      }
      if (tail === null) {
        const headBytes = (await listTailSegments(path))[0]?.headBytes ?? Number.POSITIVE_INFINITY;
        yield* readOn(head, headBytes);
        // Short of it: nothing in the tail yet. Beyond it: the joined file is being read already, and has everything.
        if (head.position !== headBytes) return;
      }
      if ((yield* readSegments()) || tail === null) return;
      // The writer has joined them: go on in the one file, behind what was read from the segments.
      const joined = tail;
      tail = null;
      const seen = joined.start + joined.position;
      const { headBytes } = joined;
      await joined.file.close();
      const cut = await cutBytesAt(head.file, headBytes);
      if (headBytes + cut > seen) yield Buffer.from(cutMark(headBytes + cut - seen));
      const mark = cut === 0 ? 0 : cutMark(cut).length;
      head.position = headBytes + mark + Math.max(0, seen - headBytes - cut);
      yield* readOn(head, Number.POSITIVE_INFINITY);
    },
    async close() {
      await head?.file.close();
      await tail?.file.close();
      head = null;
      tail = null;
    },
  };
}

const PIECE_BYTES = 64 * 1024;

async function* readOn(from: OpenFile, limit: number): AsyncGenerator<Buffer, void> {
  while (from.position < limit) {
    const piece = await readPiece(from.file, from.position, Math.min(PIECE_BYTES, limit - from.position));
    if (piece.length === 0) return;
    from.position += piece.length;
    yield piece;
  }
}

/** How many bytes the mark at `position` of a joined file stands for; 0 where nothing was cut. */
async function cutBytesAt(file: FileHandle, position: number): Promise<number> {
  const text = (await readPiece(file, position, 80)).toString("latin1");
  return Number(/^\n\[bulkhead: ([\d,]+) bytes cut here\]\n/.exec(text)?.[1]?.replaceAll(",", "") ?? 0);
}

async function readPiece(file: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(bytes), 0, bytes, position);
  return buffer.subarray(0, bytesRead);
}

async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
