import fc from "fast-check";
import { expect, test } from "vitest";
import { openBusRig } from "./door-rig.ts";
import { connectRaw } from "./raw-peer.ts";
import { sendBadFrames } from "./send-bad-frames.ts";

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

/** No rate, so that every frame goes the whole way. */
const UNBOUNDED = { callsPerSecond: 1e9, callBurst: 1e9, sentCharsPerSecond: 1e12, sentCharsBurst: 1e12 };

test("random bytes in random packets never hurt the door, and others are served meanwhile", async () => {
  await using rig = await openBusRig({ bus: UNBOUNDED, door: { maxFrameBytes: 2000 } });
  const honest = await connectRaw(rig.socketPath);
  const starts = fc.constantFrom(
    "",
    "{",
    "[",
    " \n{",
    "POST /rpc HTTP/1.1\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "\r\n",
  );
  const packets = fc.array(fc.uint8Array({ minLength: 1, maxLength: 600 }), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(starts, packets, fc.boolean(), async (start, bytes, endsPolitely) => {
      const peer = await connectRaw(rig.socketPath);
      if (start !== "") peer.send(start);
      for (const packet of bytes) if (peer.socket.writable) peer.send(Buffer.from(packet));
      if (endsPolitely) {
        peer.socket.end();
        await peer.rest();
      }
      peer.socket.destroy();
      honest.send(`${PING}\n`);
      expect(await honest.line()).toContain("pong");
    }),
    { numRuns: 300 },
  );
  honest.socket.destroy();
  await expect.poll(() => rig.door.connections).toBe(0);
  // What was noticed of it went to the caller, never to the log as a bug of ours.
  expect(rig.logged).toEqual([]);
});

test("100,000 bad frames: each is answered with an error, memory stays flat, the next good one is served", async () => {
  await using rig = await openBusRig({ bus: UNBOUNDED });
  rig.port.record = () => undefined;
  const rss: number[] = [];
  const figures = await sendBadFrames(rig.socketPath, 100_000, () => rss.push(process.memoryUsage().rss));
  expect(figures).toEqual({ sent: 100_000, replies: 100_000, wrong: 0 });
  expect(rss).toHaveLength(4);
  const [early = 0, ...later] = rss;
  expect(Math.max(...later) - early).toBeLessThan(100 * 1024 * 1024);
  const peer = await connectRaw(rig.socketPath);
  peer.send(`${PING}\n`);
  expect(await peer.line()).toContain("pong");
  peer.socket.destroy();
  expect(rig.logged).toEqual([]);
});
