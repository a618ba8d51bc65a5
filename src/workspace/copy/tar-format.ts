/**
 * Writes a tar archive with names in bytes: a git path is any bytes but NUL, which JavaScript's tar writers, taking names as text, cannot
 * say. The format is GNU's; a name of more than 100 bytes goes before its entry as an entry of type `L` (a link target: `K`).
 */

export interface TarHeader {
  readonly name: Buffer;
  readonly type: "file" | "directory" | "symlink";
  readonly mode: number;
  readonly uid: number;
  readonly mtimeSec: number;
  readonly size: number;
  readonly target?: Buffer;
}

export const TAR_BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const TYPE = { file: "0", directory: "5", symlink: "2" } as const;

/** The header blocks of one entry; its content and `tarPadding` follow. */
export function tarHeader(header: TarHeader): Buffer {
  const target = header.target ?? Buffer.alloc(0);
  return Buffer.concat([
    ...longField("L", header.name),
    ...longField("K", target),
    block({ ...header, type: TYPE[header.type], name: header.name, target }),
  ]);
}

/** Zeros that fill up the last block of a content. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((TAR_BLOCK_BYTES - (size % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES);
}

/** What an archive ends with. */
export function tarEnd(): Buffer {
  return Buffer.alloc(2 * TAR_BLOCK_BYTES);
}

function longField(type: "L" | "K", value: Buffer): Buffer[] {
  if (value.length <= NAME_BYTES) return [];
  const content = Buffer.concat([value, Buffer.alloc(1)]);
  const name = Buffer.from("././@LongLink");
  const fields = { name, type, mode: 0o644, uid: 0, mtimeSec: 0, size: content.length };
  return [block({ ...fields, target: Buffer.alloc(0) }), content, tarPadding(content.length)];
}

function block(fields: {
  name: Buffer;
  type: string;
  mode: number;
  uid: number;
  mtimeSec: number;
  size: number;
  target: Buffer;
}): Buffer {
  const bytes = Buffer.alloc(TAR_BLOCK_BYTES);
  fields.name.copy(bytes, 0, 0, NAME_BYTES);
  number(bytes, fields.mode, 100, 8);
  number(bytes, fields.uid, 108, 8);
  number(bytes, fields.uid, 116, 8);
  number(bytes, fields.size, 124, 12);
  number(bytes, Math.max(0, fields.mtimeSec), 136, 12);
  bytes.write("        ", 148, "latin1");
  bytes.write(fields.type, 156, "latin1");
  fields.target.copy(bytes, 157, 0, NAME_BYTES);
  bytes.write("ustar  \0", 257, "latin1");
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}

/** Octal while it fits, GNU's binary form above (files of 8 GiB and more). */
function number(bytes: Buffer, value: number, offset: number, length: number): void {
  const octal = value.toString(8);
  if (octal.length < length) {
    bytes.write(`${octal.padStart(length - 1, "0")}\0`, offset, "latin1");
    return;
  }
  bytes.writeBigUInt64BE(BigInt(value), offset + length - 8);
  bytes[offset] = 0x80;
}
