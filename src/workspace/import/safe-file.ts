/**
 * Opens files of a hostile tree. The container is dead and the tree is a read-only mount without symlinks, devices and programs;
 * these checks hold where that mount could not be had, too.
 */
import { constants, createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { OpenFile } from "./change-source.ts";

/** O_NONBLOCK: opening a fifo returns at once. O_NOCTTY: a terminal is not taken over. O_NOFOLLOW: no link as the last name. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
/** Files up to this size are read at once, larger ones streamed. */
const WHOLE_BYTES = 1024 * 1024;

/** Opens a regular file whose size is still `size`; null where it is anything else. Reads never pass `size`. */
export async function openSafely(path: Buffer, size: number): Promise<OpenFile | null> {
  const handle = await openRegular(path);
  if (handle === null) return null;
  try {
    const stat = await handle.stat();
    if (!stat.isFile() || stat.size !== size) {
      await handle.close();
      return null;
    }
    if (size > WHOLE_BYTES) {
      const stream = createReadStream(path, {
        fd: handle,
        start: 0,
        end: size - 1,
        autoClose: false,
        highWaterMark: 256 * 1024,
      });
      return { size, stream, close: () => closeStream(stream, handle) };
    }
    const bytes = await readUpTo(handle, size);
    await handle.close();
    return { size, bytes, close: () => Promise.resolve() };
  } catch (error) {
    await handle.close().catch(() => undefined); // The first error is the one to report.
    throw error;
  }
}

/** The content of a small regular file, or null where there is none, it is larger than `maxBytes`, or it is no regular file. */
export async function readSmallFile(path: Buffer, maxBytes: number): Promise<Buffer | null> {
  const handle = await openRegular(path);
  if (handle === null) return null;
  try {
    const stat = await handle.stat();
    if (!stat.isFile() || stat.size > maxBytes) return null;
    return await readUpTo(handle, stat.size);
  } finally {
    await handle.close();
  }
}

async function openRegular(path: Buffer): Promise<FileHandle | null> {
  try {
    return await open(path, FLAGS);
  } catch {
    return null; // Gone, a link, a socket, not permitted, name too long: all the same to the caller, who reports the path.
  }
}

async function closeStream(stream: ReturnType<typeof createReadStream>, handle: FileHandle): Promise<void> {
  stream.destroy();
  await handle.close();
}

async function readUpTo(handle: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await handle.read(bytes, filled, size - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}
