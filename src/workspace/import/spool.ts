import { constants, createReadStream } from "node:fs";
import { open, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { OpenFile } from "./change-source.ts";

/** A place in the spool. */
export interface Spooled {
  readonly offset: number;
  readonly size: number;
}

/** Bytes put aside on disk, in one file without a name: it is gone with the process, however that ends. */
export interface Spool {
  readonly bytes: number;
  append(chunk: Buffer): Promise<void>;
  /** Takes back what was appended after `bytes` was this. */
  rewind(bytes: number): void;
  open(place: Spooled): Promise<OpenFile>;
  close(): Promise<void>;
}

const WHOLE_BYTES = 1024 * 1024;

/** Makes a spool in `directory`, which exists. */
export async function createSpool(directory: string): Promise<Spool> {
  const path = join(directory, "import-spool");
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(path, flags, 0o600);
  await unlink(path);
  let end = 0;
  return {
    get bytes() {
      return end;
    },
    async append(chunk) {
      for (let written = 0; written < chunk.length; ) {
        const { bytesWritten } = await handle.write(chunk, written, chunk.length - written, end + written);
        written += bytesWritten;
      }
      end += chunk.length;
    },
    rewind(bytes) {
      end = Math.min(end, bytes);
    },
    async open({ offset, size }) {
      if (size <= WHOLE_BYTES) {
        const bytes = Buffer.allocUnsafe(size);
        const { bytesRead } = size === 0 ? { bytesRead: 0 } : await handle.read(bytes, 0, size, offset);
        return { size, bytes: bytes.subarray(0, bytesRead), close: () => Promise.resolve() };
      }
      const stream = createReadStream("", {
        fd: handle,
        start: offset,
        end: offset + size - 1,
        autoClose: false,
        highWaterMark: 256 * 1024,
      });
      return { size, stream, close: () => Promise.resolve() };
    },
    close: () => handle.close(),
  };
}
