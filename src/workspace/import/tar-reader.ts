/**
 * Reads a tar stream entry by entry, with names as the bytes they are.
 *
 * Why not a library: tar-stream decodes the `path` of pax headers as UTF-8, so a name that is not UTF-8 (engines write those into
 * pax headers as raw bytes) comes out damaged and the file could not be told from another. The framing is written by the engine,
 * so damage to it is the host's fault and throws; names, types, sizes and order inside are the container's and only reported.
 */
import { RunnerError } from "../../model/runner-error.ts";

export type TarKind = "file" | "directory" | "symlink" | "hard-link" | "special";

export interface TarEntry {
  readonly path: Buffer;
  readonly kind: TarKind;
  /** What a special entry is, in words. */
  readonly what: string;
  readonly mode: number;
  /** Bytes of content that follow; 0 for all but files. */
  readonly size: number;
  /** Target of a link. */
  readonly target: Buffer;
  /** The content. What is not read of it is skipped when the next entry is asked for. */
  content(): AsyncGenerator<Buffer, void, void>;
}

const BLOCK = 512;
const MAX_HEADER_BYTES = 1024 * 1024;
const USTAR = Buffer.from("ustar\0");
const KINDS: Readonly<Record<string, TarKind>> = {
  "0": "file",
  "\0": "file",
  "7": "file",
  "1": "hard-link",
  "2": "symlink",
  "5": "directory",
};
/** Links, devices, directories, fifos: a size in their header stands for nothing that follows. */
const NO_CONTENT: ReadonlySet<string> = new Set(["1", "2", "3", "4", "5", "6"]);
const WORDS: Readonly<Record<string, string>> = {
  "3": "device",
  "4": "device",
  "6": "fifo",
  S: "sparse entry",
};

/** Yields the entries of a tar stream. Throws `workspace-failed` where the stream is damaged or cut off. */
export async function* readTar(
  stream: AsyncIterable<Uint8Array | string>,
): AsyncGenerator<TarEntry, void, void> {
  const input = createByteQueue(stream);
  let long: { path?: Buffer; target?: Buffer; size?: number; isSparse?: boolean } = {};
  for (;;) {
    const header = await input.take(BLOCK);
    if (header === null) throw damaged("it ends without its end mark");
    if (header.every((byte) => byte === 0)) return;
    checkSum(header);
    const type = String.fromCharCode(header[156] ?? 0);
    const size = long.size ?? readNumber(header.subarray(124, 136));
    if (type === "x" || type === "g" || type === "L" || type === "K") {
      const data = await readHeaderData(input, readNumber(header.subarray(124, 136)));
      // A global header (`g`) cannot name one file.
      if (type === "x") long = { ...long, ...parsePax(data) };
      else if (type === "L") long.path = untilNul(data);
      else if (type === "K") long.target = untilNul(data);
      continue;
    }
    const kind = long.isSparse ? "special" : (KINDS[type] ?? "special");
    const hasContent = !NO_CONTENT.has(type);
    const contentBytes = hasContent ? size : 0;
    let left = contentBytes;
    const takeSome = async (): Promise<Buffer> => {
      const chunk = await input.takeSome(left);
      if (chunk === null) throw damaged("it ends inside a file");
      left -= chunk.length;
      return chunk;
    };
    yield {
      path: long.path ?? headerName(header),
      kind,
      what: long.isSparse ? "sparse entry" : (WORDS[type] ?? `tar entry of type ${JSON.stringify(type)}`),
      mode: readNumber(header.subarray(100, 108)),
      size: kind === "file" ? contentBytes : 0,
      target: long.target ?? untilNul(header.subarray(157, 257)),
      async *content() {
        while (left > 0) yield await takeSome();
      },
    };
    long = {};
    while (left > 0) await takeSome();
    const padding = (BLOCK - (contentBytes % BLOCK)) % BLOCK;
    if (padding > 0 && (await input.take(padding)) === null) throw damaged("it ends inside a file");
  }
}

interface ByteQueue {
  /** Exactly `bytes` bytes, or null where the stream ends first. */
  take(bytes: number): Promise<Buffer | null>;
  /** Between 1 and `max` bytes, or null at the end. */
  takeSome(max: number): Promise<Buffer | null>;
}

function createByteQueue(stream: AsyncIterable<Uint8Array | string>): ByteQueue {
  const source = stream[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);

  async function fill(): Promise<boolean> {
    while (head.length === 0) {
      const next = await source.next();
      if (next.done) return false;
      head = Buffer.from(next.value);
    }
    return true;
  }

  async function takeSome(max: number): Promise<Buffer | null> {
    if (!(await fill())) return null;
    const chunk = head.subarray(0, max);
    head = head.subarray(chunk.length);
    return chunk;
  }

  return {
    takeSome,
    async take(bytes) {
      const parts: Buffer[] = [];
      let missing = bytes;
      while (missing > 0) {
        const part = await takeSome(missing);
        if (part === null) return null;
        parts.push(part);
        missing -= part.length;
      }
      return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
    },
  };
}

async function readHeaderData(input: ByteQueue, size: number): Promise<Buffer> {
  if (size > MAX_HEADER_BYTES) throw damaged(`a header of ${size} bytes, the limit is ${MAX_HEADER_BYTES}`);
  const padded = Math.ceil(size / BLOCK) * BLOCK;
  const data = await input.take(padded);
  if (data === null) throw damaged("it ends inside a header");
  return data.subarray(0, size);
}

/** Reads `<length> <key>=<value>\n` records. Values are bytes: a path may hold a line feed, or be no UTF-8. */
function parsePax(data: Buffer): { path?: Buffer; target?: Buffer; size?: number; isSparse?: boolean } {
  const found: { path?: Buffer; target?: Buffer; size?: number; isSparse?: boolean } = {};
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(0x20, at);
    const length = space === -1 ? Number.NaN : Number(data.toString("latin1", at, space));
    const equals = data.indexOf(0x3d, space);
    if (!Number.isSafeInteger(length) || length <= space - at || at + length > data.length || equals === -1) {
      throw damaged("a pax header that cannot be read");
    }
    const key = data.toString("latin1", space + 1, equals);
    const value = data.subarray(equals + 1, at + length - 1);
    if (key === "path") found.path = value;
    else if (key === "linkpath") found.target = value;
    else if (key === "size") found.size = toSize(value.toString("latin1"), 10);
    else if (key.startsWith("GNU.sparse.")) found.isSparse = true;
    at += length;
  }
  return found;
}

function headerName(header: Buffer): Buffer {
  const name = untilNul(header.subarray(0, 100));
  const prefix = header.subarray(257, 263).equals(USTAR)
    ? untilNul(header.subarray(345, 500))
    : Buffer.alloc(0);
  return prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from("/"), name]);
}

function untilNul(bytes: Buffer): Buffer {
  const end = bytes.indexOf(0);
  return Buffer.from(end === -1 ? bytes : bytes.subarray(0, end));
}

function checkSum(header: Buffer): void {
  let sum = 8 * 0x20;
  for (const [index, byte] of header.entries()) if (index < 148 || index >= 156) sum += byte;
  if (sum !== readNumber(header.subarray(148, 156))) throw damaged("a header with a wrong checksum");
}

/** Octal digits, or (GNU) a big-endian number marked by the top bit. */
function readNumber(field: Buffer): number {
  const first = field[0] ?? 0;
  if ((first & 0x80) === 0) {
    const digits = /^[ \0]*([0-7]*)/.exec(field.toString("latin1"))?.[1] ?? "";
    return digits === "" ? 0 : toSize(digits, 8);
  }
  let value = first & 0x7f;
  for (const byte of field.subarray(1)) value = value * 256 + byte;
  if (!Number.isSafeInteger(value)) throw damaged("a number that is too large");
  return value;
}

function toSize(digits: string, radix: 8 | 10): number {
  const value = /^\d+$/.test(digits) ? Number.parseInt(digits, radix) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw damaged("a number that cannot be read");
  return value;
}

function damaged(what: string): RunnerError {
  return new RunnerError("workspace-failed", `the archive of the workspace is damaged: ${what}`);
}
