import { isUtf8 } from "node:buffer";

/** What the reader found next. After `oversize` the stream is out of step and must not be read on. */
export type ReadFrame =
  | { readonly kind: "frame"; readonly text: string }
  | { readonly kind: "not-utf8" }
  | { readonly kind: "oversize" };

/** Cuts a byte stream into newline-delimited frames. Pull: what is not asked for stays unread, so a caller can stop at any frame. */
export interface FrameReader {
  /** Adds bytes. MUST NOT be called while `next` would still answer a frame (the rest would have to be copied). */
  push(chunk: Buffer): void;
  /** The next whole frame; undefined where more bytes are needed. Empty lines are skipped, `\r\n` counts as `\n`. */
  next(): ReadFrame | undefined;
  /** The stream has ended: what is left counts as a last frame. */
  end(): ReadFrame | undefined;
  /** Bytes of a frame that has begun and not ended. */
  readonly partialBytes: number;
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const FIRST_ALLOCATION_BYTES = 1024;
const EMPTY: Buffer = Buffer.alloc(0);

/**
 * Makes a reader for frames of at most `maxBytes`.
 *
 * A begun frame is kept in one buffer of its own that grows by doubling: a peer that sends single bytes costs their number, not one
 * chunk object each, and the chunk they came in is let go.
 */
export function createFrameReader(maxBytes: number): FrameReader {
  let chunk = EMPTY;
  let offset = 0;
  let partial = EMPTY;
  let partialBytes = 0;

  function keep(bytes: Buffer): void {
    const needed = partialBytes + bytes.length;
    if (needed > partial.length) {
      const grown = Buffer.allocUnsafe(
        Math.min(maxBytes + 1, Math.max(needed, partial.length * 2, FIRST_ALLOCATION_BYTES)),
      );
      partial.copy(grown, 0, 0, partialBytes);
      partial = grown;
    }
    bytes.copy(partial, partialBytes);
    partialBytes = needed;
  }

  function takePartial(): Buffer {
    const taken = partial.subarray(0, partialBytes);
    partial = EMPTY;
    partialBytes = 0;
    return taken;
  }

  function decode(line: Buffer): ReadFrame | undefined {
    const end = line.at(-1) === RETURN ? line.length - 1 : line.length;
    if (end === 0) return undefined;
    if (end > maxBytes) return { kind: "oversize" };
    const bytes = end === line.length ? line : line.subarray(0, end);
    if (!isUtf8(bytes)) return { kind: "not-utf8" };
    return { kind: "frame", text: bytes.toString("utf8") };
  }

  function next(): ReadFrame | undefined {
    while (offset < chunk.length) {
      const newline = chunk.indexOf(NEWLINE, offset);
      const piece = chunk.subarray(offset, newline === -1 ? chunk.length : newline);
      // One byte more than the limit may be a carriage return; `decode` knows when the line is whole.
      if (partialBytes + piece.length > maxBytes + 1) {
        chunk = EMPTY;
        offset = 0;
        takePartial();
        return { kind: "oversize" };
      }
      if (newline === -1) {
        keep(piece);
        break;
      }
      offset = newline + 1;
      let line = piece;
      if (partialBytes > 0) {
        keep(piece);
        line = takePartial();
      }
      const frame = decode(line);
      if (frame) return frame;
    }
    chunk = EMPTY;
    offset = 0;
    return undefined;
  }

  return {
    push(bytes) {
      chunk = offset < chunk.length ? Buffer.concat([chunk.subarray(offset), bytes]) : bytes;
      offset = 0;
    },
    next,
    end() {
      return next() ?? decode(takePartial());
    },
    get partialBytes() {
      return partialBytes;
    },
  };
}
