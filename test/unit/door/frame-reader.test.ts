import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createFrameReader, type ReadFrame } from "../../../src/door/frame-reader.ts";

/** Feeds chunks as a connection does: push, then take all there is; stops at an oversize frame. */
function readAll(chunks: readonly Buffer[], maxBytes: number): ReadFrame[] {
  const reader = createFrameReader(maxBytes);
  const found: ReadFrame[] = [];
  const drain = (take: () => ReadFrame | undefined) => {
    for (let frame = take(); frame; frame = take()) {
      found.push(frame);
      if (frame.kind === "oversize") return true;
    }
    return false;
  };
  for (const chunk of chunks) {
    reader.push(chunk);
    if (drain(() => reader.next())) return found;
    expect(reader.partialBytes).toBeLessThanOrEqual(maxBytes + 1);
  }
  drain(() => reader.end());
  return found;
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const edges = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...edges].map((start, index) => bytes.subarray(start, edges[index] ?? bytes.length));
}

const texts = (frames: readonly ReadFrame[]) =>
  frames.map((frame) => (frame.kind === "frame" ? frame.text : frame.kind));

describe("createFrameReader", () => {
  test("two frames in one packet, one frame in many", () => {
    expect(texts(readAll([Buffer.from('{"a":1}\n{"b":2}\n')], 100))).toEqual(['{"a":1}', '{"b":2}']);
    const bytes = Buffer.from(`${"x".repeat(99)}\n`);
    expect(
      texts(
        readAll(
          [...bytes].map((byte) => Buffer.from([byte])),
          100,
        ),
      ),
    ).toEqual(["x".repeat(99)]);
  });

  test("empty lines are nothing, a carriage return before the newline is dropped", () => {
    expect(texts(readAll([Buffer.from("\n\r\n\na\r\n\r\nb\rc\n")], 100))).toEqual(["a", "b\rc"]);
  });

  test("the end of the stream ends the last frame", () => {
    expect(texts(readAll([Buffer.from("a\nb")], 100))).toEqual(["a", "b"]);
  });

  test("a frame may have exactly the limit, with or without a carriage return", () => {
    expect(texts(readAll([Buffer.from(`${"x".repeat(10)}\n`)], 10))).toEqual(["x".repeat(10)]);
    expect(texts(readAll([Buffer.from(`${"x".repeat(10)}\r\n`)], 10))).toEqual(["x".repeat(10)]);
    expect(texts(readAll([Buffer.from("x".repeat(10)), Buffer.from("\r"), Buffer.from("\n")], 10))).toEqual([
      "x".repeat(10),
    ]);
    expect(texts(readAll([Buffer.from(`${"x".repeat(11)}\n`)], 10))).toEqual(["oversize"]);
  });

  test("an endless frame is noticed at the limit, not at its end", () => {
    const reader = createFrameReader(1000);
    let pushed = 0;
    for (;;) {
      reader.push(Buffer.alloc(100, "x"));
      pushed += 100;
      if (reader.next()) break;
    }
    expect(pushed).toBe(1100);
    expect(reader.partialBytes).toBe(0);
  });

  test("bytes that are not UTF-8 are told, and the next frame is read", () => {
    const bytes = Buffer.concat([Buffer.from([0x7b, 0xff, 0xfe, 0x0a]), Buffer.from("ok\n")]);
    expect(texts(readAll([bytes], 100))).toEqual(["not-utf8", "ok"]);
  });

  test("a character cut between packets is whole again", () => {
    const bytes = Buffer.from("größe 日本 😀\n");
    for (let place = 1; place < bytes.length; place += 1) {
      expect(texts(readAll([bytes.subarray(0, place), bytes.subarray(place)], 100))).toEqual([
        "größe 日本 😀",
      ]);
    }
  });

  test("a frame does not depend on how its bytes were cut into packets", () => {
    const anyBytes = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
    const lines = fc
      .array(fc.oneof(fc.string({ unit: "grapheme", maxLength: 30 }), fc.json()), { maxLength: 20 })
      .map((parts) => Buffer.from(parts.join("\n")));
    fc.assert(
      fc.property(
        fc.oneof(anyBytes, lines),
        fc.array(fc.nat({ max: 400 }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 200 }),
        (bytes, places, maxBytes) => {
          expect(readAll(cut(bytes, places), maxBytes)).toEqual(readAll([bytes], maxBytes));
        },
      ),
      { numRuns: 500 },
    );
  });

  test("reads exactly what splitting at newlines gives", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" })), (parts) => {
        const expected = parts
          .join("\n")
          .split("\n")
          .map((line) => Buffer.from(line).toString().replace(/\r$/, ""))
          .filter((line) => line !== "");
        expect(texts(readAll([Buffer.from(parts.join("\n"))], 1_000_000))).toEqual(expected);
      }),
    );
  });

  test("a begun frame costs its bytes, not its packets", () => {
    const reader = createFrameReader(1024 * 1024);
    const before = process.memoryUsage().rss;
    for (let index = 0; index < 500_000; index += 1) {
      // Each byte sits in a chunk of its own slab, as a socket delivers it.
      reader.push(Buffer.allocUnsafeSlow(64).subarray(0, 1).fill(0x78));
      reader.next();
    }
    expect(reader.partialBytes).toBe(500_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
  });
});
