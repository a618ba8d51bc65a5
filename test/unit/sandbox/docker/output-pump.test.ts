import { PassThrough } from "node:stream";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createFrameParser, pumpOutput } from "../../../../src/sandbox/docker/output-pump.ts";

function frame(stream: 1 | 2, payload: Buffer): Buffer {
  const header = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}

describe("createFrameParser", () => {
  test("gives back each stream byte for byte, however the connection cuts it", () => {
    const frames = fc.array(
      fc.tuple(fc.constantFrom(1 as const, 2 as const), fc.uint8Array({ maxLength: 40 })),
    );
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (sent, cuts) => {
        const wire = Buffer.concat(sent.map(([stream, bytes]) => frame(stream, Buffer.from(bytes))));
        const got = { stdout: "", stderr: "" };
        const parse = createFrameParser((stream, bytes) => {
          got[stream] += bytes.toString("latin1");
        });
        for (let at = 0, i = 0; at < wire.length; i += 1) {
          const size = cuts[i % cuts.length] ?? 1;
          expect(parse(wire.subarray(at, at + size))).toBe(true);
          at += size;
        }
        const want = (kind: 1 | 2) =>
          sent
            .map(([stream, bytes]) => (stream === kind ? Buffer.from(bytes).toString("latin1") : ""))
            .join("");
        expect(got).toEqual({ stdout: want(1), stderr: want(2) });
      }),
    );
  });

  test("gives up on what is no frame", () => {
    const parse = createFrameParser(() => undefined);
    expect(parse(Buffer.from("plain text, not framed"))).toBe(false);
  });
});

describe("pumpOutput", () => {
  test("stops reading while the receiver is busy, and delivers everything in order", async () => {
    const source = new PassThrough();
    const gate = Promise.withResolvers<void>();
    let got = 0;
    const pump = pumpOutput(source, async ({ bytes }) => {
      await gate.promise;
      got += bytes.length;
    });
    const chunk = frame(1, Buffer.alloc(256 * 1024));
    let sent = 0;
    do {
      source.write(chunk);
      sent += 1;
      await new Promise(setImmediate);
    } while (sent < 40 && !source.isPaused());
    expect(source.isPaused()).toBe(true);
    expect(sent).toBeLessThan(10);
    source.end();
    gate.resolve();
    expect(await pump.done).toEqual({ kind: "complete" });
    expect(got).toBe(sent * 256 * 1024);
  });

  test("lets go of a stream that is held open, but not while the receiver works", async () => {
    const source = new PassThrough();
    const gate = Promise.withResolvers<void>();
    let got = "";
    const pump = pumpOutput(source, async ({ bytes }) => {
      await gate.promise;
      got += bytes.toString();
    });
    source.write(frame(2, Buffer.from("late")));
    const drained = pump.drain(20);
    setTimeout(() => gate.resolve(), 100);
    expect(await drained).toEqual({ kind: "held-open" });
    expect(got).toBe("late");
    expect(source.destroyed).toBe(true);
  });

  test("says what broke: the receiver, or the stream", async () => {
    const source = new PassThrough();
    const failing = pumpOutput(source, () => Promise.reject(new Error("no space")));
    source.end(Buffer.concat([frame(1, Buffer.from("a")), frame(1, Buffer.from("b"))]));
    expect(await failing.done).toEqual({ kind: "broken", message: "no space" });
    const garbled = new PassThrough();
    const pump = pumpOutput(garbled, () => undefined);
    garbled.end("this is not a frame at all");
    expect(await pump.done).toMatchObject({ kind: "broken", message: expect.stringContaining("damaged") });
  });
});
