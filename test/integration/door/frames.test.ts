import { describe, expect, test } from "vitest";
import { createEcho, openBusRig, openRig } from "./door-rig.ts";
import { connectRaw } from "./raw-peer.ts";

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const PONG = '{"jsonrpc":"2.0","id":1,"result":{"pong":true}}';

describe("frames", () => {
  test("two in one packet, one in a hundred packets, blank lines and white space before the first", async () => {
    await using rig = await openBusRig();
    const peer = await connectRaw(rig.socketPath);
    peer.socket.setNoDelay(true);
    peer.send(` \r\n\n\t${PING}\n\r\n${PING}\r\n`);
    expect([await peer.line(), await peer.line()]).toEqual([PONG, PONG]);
    const long = `{"jsonrpc":"2.0","id":1,"method":"log","params":{"message":"${"ü".repeat(200)}"}}\n`;
    const bytes = Buffer.from(long);
    for (let part = 0; part < 100; part += 1) {
      const [from, to] = [part, part + 1].map((place) => Math.floor((bytes.length * place) / 100));
      await new Promise((sent) => peer.socket.write(bytes.subarray(from, to), sent));
    }
    expect(await peer.line()).toContain("accepted");
    expect(rig.port.told).toContainEqual([
      "log",
      expect.anything(),
      { level: "info", message: "ü".repeat(200) },
    ]);
    peer.socket.destroy();
  });

  test("garbage, invalid UTF-8 and batches are answered and the connection lives on", async () => {
    await using rig = await openBusRig();
    const peer = await connectRaw(rig.socketPath);
    peer.send("{nonsense\n");
    expect(JSON.parse(await peer.line())).toMatchObject({ id: null, error: { code: -32700 } });
    peer.send(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d, 0x0a]));
    expect(JSON.parse(await peer.line())).toMatchObject({ id: null, error: { code: -32700 } });
    peer.send(`[${PING}]\n`);
    expect(JSON.parse(await peer.line())).toMatchObject({ id: null, error: { code: -32600 } });
    peer.send(`${PING}\n`);
    expect(await peer.line()).toBe(PONG);
    peer.socket.destroy();
  });

  test("a batch as the first thing is refused in words, not taken for HTTP", async () => {
    await using rig = await openBusRig();
    const peer = await connectRaw(rig.socketPath);
    peer.send(`[${PING}]\n`);
    expect(JSON.parse(await peer.line()).error.message).toContain("batches are not taken");
    peer.socket.destroy();
  });

  test("a half-closed peer gets all its answers, also to a last line without a newline", async () => {
    const echo = createEcho();
    const release = echo.hold();
    await using rig = await openRig(echo);
    const peer = await connectRaw(rig.socketPath);
    peer.send('{"a"\n{"b"\n{"c"');
    peer.socket.end();
    await expect.poll(() => echo.seen).toEqual(['{"a"', '{"b"', '{"c"']);
    release();
    expect(await peer.rest()).toBe('echo:{"a"\necho:{"b"\necho:{"c"\n');
    await expect.poll(() => rig.door.connections).toBe(0);
  });

  test("a slow frame does not hold up a fast one", async () => {
    const echo = createEcho();
    const release = echo.hold();
    await using rig = await openRig(echo);
    const peer = await connectRaw(rig.socketPath);
    peer.send("{slow\n{fast\n");
    expect(await peer.line()).toBe("echo:{fast");
    release();
    expect(await peer.line()).toBe("echo:{slow");
    peer.socket.destroy();
  });

  test("a peer that vanishes in the middle of anything leaves nothing behind", async () => {
    const echo = createEcho();
    const release = echo.hold();
    await using rig = await openRig(echo);
    for (const bytes of ["", "{half", "{slow\n", "POST /rpc HTTP/1.1\r\nContent-Le", "GET"]) {
      const peer = await connectRaw(rig.socketPath);
      if (bytes !== "") await new Promise((sent) => peer.socket.write(bytes, sent));
      peer.socket.destroy();
    }
    // A peer that is gone looks like one that has only ended its side, until it is written to.
    await expect.poll(() => rig.door.connections).toBe(2);
    release();
    await expect.poll(() => rig.door.connections).toBe(0);
  });
});

describe("limits", () => {
  test("a frame over the limit is answered, the rest is not kept, the connection ends", async () => {
    await using rig = await openBusRig({ door: { maxFrameBytes: 1000 } });
    const peer = await connectRaw(rig.socketPath);
    peer.send(`${PING}\n{"x":"`);
    for (let sent = 0; sent < 4_000_000; sent += 100_000) peer.send(Buffer.alloc(100_000, "x"));
    expect(await peer.line()).toBe(PONG);
    expect(JSON.parse(await peer.line())).toMatchObject({
      error: { code: 4009, data: { limitBytes: 1000 } },
    });
    expect(await peer.rest()).toBe("");
    peer.socket.destroy();
  });

  test("half a frame is given a time from its first byte, an idle connection is not", async () => {
    await using rig = await openBusRig({ door: { partialFrameTimeoutMs: 150 } });
    const idle = await connectRaw(rig.socketPath);
    const served = await connectRaw(rig.socketPath);
    served.send(`${PING}\n`);
    expect(await served.line()).toBe(PONG);
    const slow = await connectRaw(rig.socketPath);
    slow.send("{");
    const dripping = setInterval(() => slow.send(" "), 20);
    expect(JSON.parse(await slow.line())).toMatchObject({ error: { code: 4012 } });
    clearInterval(dripping);
    await slow.rest();
    for (const peer of [idle, served]) {
      peer.send(`${PING}\n`);
      expect(await peer.line()).toBe(PONG);
      peer.socket.destroy();
    }
  });

  test("no more frames are read than may be in work", async () => {
    const echo = createEcho();
    const release = echo.hold();
    await using rig = await openRig(echo, { maxInFlight: 5 });
    const peer = await connectRaw(rig.socketPath);
    const count = 2000;
    for (let index = 0; index < count; index += 1) peer.send(`{${index}\n`);
    await expect.poll(() => echo.seen.length).toBe(5);
    release();
    for (let index = 0; index < count; index += 1) expect(await peer.line()).toBe(`echo:{${index}`);
    expect(echo.seen).toHaveLength(count);
    peer.socket.destroy();
  });

  test("who does not read is not read any more, and gets everything when it reads again", async () => {
    let answered = 0;
    const big = "y".repeat(20_000);
    await using rig = await openRig({
      frame: async () => {
        answered += 1;
        return big;
      },
      oversize: () => "",
    });
    const peer = await connectRaw(rig.socketPath);
    peer.socket.pause();
    const count = 3000;
    let sent = 0;
    peer.socket.write("{x\n".repeat(count), () => {
      sent = count;
    });
    await expect.poll(() => answered).toBeGreaterThan(5);
    // Settled: the count stands still over many turns of the loop.
    let before = -1;
    while (before !== answered) {
      before = answered;
      for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate);
    }
    expect(answered).toBeLessThan(200);
    expect(rig.door.connections).toBe(1);
    peer.socket.resume();
    for (let index = 0; index < count; index += 1) expect((await peer.line()).length).toBe(20_000);
    expect(sent).toBe(count);
    peer.socket.destroy();
  });

  test("who leaves more unread than the limit is cut off", async () => {
    await using rig = await openRig(
      { frame: async () => "y".repeat(300_000), oversize: () => "" },
      { maxQueuedBytes: 1_000_000 },
    );
    const peer = await connectRaw(rig.socketPath);
    peer.socket.pause();
    peer.send("{x\n".repeat(64));
    await expect.poll(() => rig.door.connections).toBe(0);
    peer.socket.destroy();
  });

  test("begun frames of all connections together are bounded", async () => {
    await using rig = await openRig(createEcho(), { maxFrameBytes: 100_000, maxQueuedBytes: 100_000 });
    const peers = await Promise.all(Array.from({ length: 16 }, () => connectRaw(rig.socketPath)));
    for (const peer of peers) peer.send(`{${"x".repeat(90_000)}`);
    await expect.poll(() => rig.door.connections).toBeLessThanOrEqual(4);
    expect(rig.door.connections).toBeGreaterThan(0);
    for (const peer of peers) peer.socket.destroy();
  });

  test("64 connections are served, the 65th is told why not, and a freed place can be taken", async () => {
    await using rig = await openBusRig();
    const peers = await Promise.all(Array.from({ length: 64 }, () => connectRaw(rig.socketPath)));
    for (const peer of peers) peer.send(`${PING}\n`);
    for (const peer of peers) expect(await peer.line()).toBe(PONG);
    const extra = await connectRaw(rig.socketPath);
    expect(JSON.parse(await extra.line())).toMatchObject({ error: { code: 4010 } });
    await extra.rest();
    peers.pop()?.socket.destroy();
    await expect.poll(() => rig.door.connections).toBe(63);
    const late = await connectRaw(rig.socketPath);
    late.send(`${PING}\n`);
    expect(await late.line()).toBe(PONG);
    for (const peer of [...peers, extra, late]) peer.socket.destroy();
  });
});
