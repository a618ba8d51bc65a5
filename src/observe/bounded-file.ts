import { type FileHandle, open, readdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { formatCount } from "../util/format-count.ts";

const TAIL_SEGMENTS = 4;

/** What stands in the file where bytes are missing. */
export function cutMark(bytes: number): string {
  return `\n[bulkhead: ${formatCount(bytes)} bytes cut here]\n`;
}

export interface TailSegment {
  readonly path: string;
  /** Size of the head, which is where the joined file has its mark. */
  readonly headBytes: number;
  /** Where in the whole output it begins. */
  readonly start: number;
}

/** The segments beside a log, oldest first. */
export async function listTailSegments(path: string): Promise<TailSegment[]> {
  const prefix = `${basename(path)}.tail-`;
  const names = await readdir(dirname(path)).catch(() => []);
  return names
    .flatMap((name) => {
      const match = name.startsWith(prefix) ? /^(\d+)-(\d+)$/.exec(name.slice(prefix.length)) : null;
      if (match === null) return [];
      return [{ path: join(dirname(path), name), headBytes: Number(match[1]), start: Number(match[2]) }];
    })
    .sort((a, b) => a.start - b.start);
}

export interface BoundedFile {
  append(bytes: Buffer): Promise<void>;
  finish(): Promise<void>;
  readonly cutBytes: number;
}

/** Opens the files behind an output log (see the head of `output-log.ts`), going on behind what is there. */
export async function openBoundedFile(path: string, maxBytes: number): Promise<BoundedFile> {
  const headBytes = Math.floor(maxBytes / 2);
  const segmentBytes = Math.floor(maxBytes / 2 / TAIL_SEGMENTS);
  // 0600: it may hold what the agent was told. O_APPEND: a follower never sees a hole.
  const head = await open(path, "a", 0o600);
  const segments = await listTailSegments(path);
  const known = segments[0]?.headBytes;
  if (known !== undefined) await head.truncate(known);
  let headSize = (await head.stat()).size;
  let current: { file: FileHandle; size: number } | null = null;
  const newest = segments.at(-1);
  let offset = headSize;
  if (newest !== undefined) {
    const size = (await stat(newest.path)).size;
    current = { file: await open(newest.path, "a", 0o600), size };
    offset = newest.start + size;
  }

  const rotate = async (): Promise<{ file: FileHandle; size: number }> => {
    await current?.file.close();
    const segment = { path: `${path}.tail-${headSize}-${offset}`, headBytes: headSize, start: offset };
    current = { file: await open(segment.path, "a", 0o600), size: 0 };
    segments.push(segment);
    const oldest = segments.length > TAIL_SEGMENTS ? segments.shift() : undefined;
    if (oldest !== undefined) await rm(oldest.path, { force: true });
    return current;
  };

  return {
    get cutBytes() {
      const first = segments[0];
      return first === undefined ? 0 : first.start - headSize;
    },
    async append(bytes) {
      let rest = bytes;
      if (segments.length === 0 && headSize < headBytes) {
        const part = rest.subarray(0, headBytes - headSize);
        await head.appendFile(part);
        headSize += part.length;
        offset += part.length;
        rest = rest.subarray(part.length);
      }
      while (rest.length > 0) {
        const segment = current === null || current.size >= segmentBytes ? await rotate() : current;
        const part = rest.subarray(0, segmentBytes - segment.size);
        await segment.file.appendFile(part);
        segment.size += part.length;
        offset += part.length;
        rest = rest.subarray(part.length);
      }
    },
    async finish() {
      await current?.file.close();
      current = null;
      try {
        const first = segments[0];
        if (first !== undefined && first.start > headSize)
          await head.appendFile(cutMark(first.start - headSize));
        for (const segment of segments) {
          const file = await open(segment.path, "r");
          try {
            for await (const chunk of file.createReadStream({ autoClose: false }))
              await head.appendFile(chunk);
          } finally {
            await file.close();
          }
        }
        for (const segment of segments) await rm(segment.path, { force: true });
      } finally {
        await head.close();
      }
    },
  };
}
