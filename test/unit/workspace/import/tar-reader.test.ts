import { describe, expect, test } from "vitest";
import { readTar, type TarEntry } from "../../../../src/workspace/import/tar-reader.ts";

interface Header {
  readonly name: string | Buffer;
  readonly type?: string;
  readonly size?: number | Buffer;
  readonly link?: string;
  readonly prefix?: string;
  readonly mode?: number;
}

function header({ name, type = "0", size = 0, link = "", prefix = "", mode = 0o644 }: Header): Buffer {
  const block = Buffer.alloc(512);
  Buffer.from(name as string).copy(block, 0);
  block.write(`${mode.toString(8).padStart(7, "0")}\0`, 100);
  if (Buffer.isBuffer(size)) size.copy(block, 124);
  else block.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  block.write("        ", 148);
  block.write(type, 156, "latin1");
  block.write(link, 157);
  block.write("ustar\u000000", 257, "latin1");
  block.write(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

function pax(records: ReadonlyArray<readonly [string, Buffer]>): Buffer {
  const lines = records.map(([key, value]) => {
    let length = key.length + value.length + 3;
    while (String(length).length + key.length + value.length + 3 !== length) length += 1;
    return Buffer.concat([Buffer.from(`${length} ${key}=`), value, Buffer.from("\n")]);
  });
  const data = Buffer.concat(lines);
  return Buffer.concat([header({ name: "pax", type: "x", size: data.length }), padded(data)]);
}

const END = Buffer.alloc(1024);

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function readAll(
  parts: readonly Buffer[],
  chunkBytes = 100_000,
): Promise<Array<TarEntry & { bytes: string }>> {
  const entries = [];
  for await (const entry of readTar(inChunks(Buffer.concat(parts), chunkBytes))) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry.content()) chunks.push(Buffer.from(chunk));
    entries.push({ ...entry, bytes: Buffer.concat(chunks).toString("latin1") });
  }
  return entries;
}

describe("readTar", () => {
  test.each([1, 7, 511, 512, 100_000])("in chunks of %i bytes", async (chunkBytes) => {
    const entries = await readAll(
      [
        header({ name: "d/", type: "5" }),
        header({ name: "d/a", size: 5, mode: 0o755 }),
        padded(Buffer.from("hello")),
        header({ name: "empty" }),
        header({ name: "tail", prefix: "p/q", size: 512 }),
        Buffer.alloc(512, "x"),
        header({ name: "l", type: "2", link: "d/a" }),
        header({ name: "h", type: "1", link: "d/a" }),
        header({ name: "f", type: "6" }),
        END,
      ],
      chunkBytes,
    );
    expect(entries.map(({ path, kind, bytes }) => [path.toString(), kind, bytes.length])).toEqual([
      ["d/", "directory", 0],
      ["d/a", "file", 5],
      ["empty", "file", 0],
      ["p/q/tail", "file", 512],
      ["l", "symlink", 0],
      ["h", "hard-link", 0],
      ["f", "special", 0],
    ]);
    expect(entries[1]?.bytes).toBe("hello");
    expect(entries[4]?.target.toString()).toBe("d/a");
  });

  test("names are bytes in every format", async () => {
    const odd = Buffer.from([0x61, 0xff, 0x0a, 0x3d, 0x62]);
    const long = Buffer.concat([Buffer.alloc(300, "n"), Buffer.from([0xfe])]);
    const entries = await readAll([
      header({ name: odd }),
      pax([
        ["path", odd],
        ["mtime", Buffer.from("1.5")],
      ]),
      header({ name: "short" }),
      header({ name: "././@LongLink", type: "L", size: long.length + 1 }),
      padded(Buffer.concat([long, Buffer.from([0])])),
      header({ name: "cut" }),
      pax([["linkpath", odd]]),
      header({ name: "link", type: "2", link: "cut" }),
      header({ name: "after" }),
      END,
    ]);
    expect(entries.map((entry) => entry.path)).toEqual([
      odd,
      odd,
      long,
      Buffer.from("link"),
      Buffer.from("after"),
    ]);
    expect(entries[3]?.target).toEqual(odd);
  });

  test("sizes: pax wins, base 256 is read, content that nobody reads is skipped", async () => {
    const base256 = Buffer.alloc(12);
    base256[0] = 0x80;
    base256[11] = 3;
    const bytes = Buffer.concat([
      pax([["size", Buffer.from("4")]]),
      header({ name: "a", size: 0 }),
      padded(Buffer.from("four")),
      header({ name: "b", size: base256 }),
      padded(Buffer.from("xyz")),
      header({ name: "c" }),
      END,
    ]);
    const seen: Array<[string, number]> = [];
    for await (const entry of readTar(inChunks(bytes, 64))) seen.push([entry.path.toString(), entry.size]);
    expect(seen).toEqual([
      ["a", 4],
      ["b", 3],
      ["c", 0],
    ]);
  });

  test("sparse entries are not taken for files", async () => {
    const [first, second] = await readAll([
      pax([["GNU.sparse.major", Buffer.from("1")]]),
      header({ name: "s", size: 3 }),
      padded(Buffer.from("map")),
      header({ name: "t", type: "S", size: 3 }),
      padded(Buffer.from("map")),
      END,
    ]);
    expect([first?.kind, second?.kind]).toEqual(["special", "special"]);
  });

  test.each<[string, Buffer[]]>([
    ["a wrong checksum", [header({ name: "a" }).fill("b", 0, 1), END]],
    ["an end inside a file", [header({ name: "a", size: 600 }), Buffer.alloc(512)]],
    ["no end mark", [header({ name: "a" })]],
    ["a huge header", [header({ name: "p", type: "x", size: 9 * 1024 * 1024 }), END]],
    ["a broken pax record", [header({ name: "p", type: "x", size: 6 }), padded(Buffer.from("99 a=b")), END]],
    ["a size past all bounds", [header({ name: "a", size: Buffer.alloc(12, 0xff) }), END]],
  ])("throws over %s", async (_name, parts) => {
    await expect(readAll(parts)).rejects.toMatchObject({ code: "workspace-failed" });
  });
});
