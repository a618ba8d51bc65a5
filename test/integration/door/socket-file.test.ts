import { execFile } from "node:child_process";
import { once } from "node:events";
import { lstat, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDoor } from "../../../src/door/unix-door.ts";
import { createEcho, openRig } from "./door-rig.ts";
import { connectRaw } from "./raw-peer.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "bulkhead-sock-"));
});
afterEach(() => rm(directory, { recursive: true }));

const openAt = (socketPath: string, mode = 0o666) => openDoor({ socketPath, mode, handlers: createEcho() });

describe("the socket file", () => {
  test.each([0o600, 0o660, 0o666])(
    "has the mode asked for, whatever the umask, and nothing else is left",
    async (mode) => {
      const socketPath = join(directory, "door.sock");
      const umask = process.umask(0o077);
      try {
        await using door = disposable(await openAt(socketPath, mode));
        expect((await stat(socketPath)).mode & 0o777).toBe(mode);
        expect(await readdir(directory)).toEqual(["door.sock"]);
        expect(door.inner.socketPath).toBe(socketPath);
      } finally {
        process.umask(umask);
      }
      expect(await readdir(directory)).toEqual([]);
    },
  );

  test("a path of 107 bytes works, one of 108 is refused with path, limit and length", async () => {
    const fill = (bytes: number) =>
      join(directory, "d".repeat(bytes - directory.length - "/".length - "/door.sock".length));
    for (const bytes of [107, 108]) await mkdir(fill(bytes));
    await using door = disposable(await openAt(join(fill(107), "door.sock")));
    const peer = await connectRaw(door.inner.socketPath);
    peer.socket.destroy();
    const tooLong = join(fill(108), "door.sock");
    await expect(openAt(tooLong)).rejects.toMatchObject({
      name: "RunnerError",
      code: "config-invalid",
      message: `the socket path ${tooLong} needs 108 bytes, Linux allows 107`,
    });
  });

  test("the socket of a dead process is replaced", async () => {
    const socketPath = join(directory, "door.sock");
    const script = `require("net").createServer().listen(${JSON.stringify(socketPath)}, () => process.kill(process.pid, "SIGKILL"))`;
    const child = execFile(process.execPath, ["-e", script]);
    await once(child, "exit");
    expect((await lstat(socketPath)).isSocket()).toBe(true);
    await using door = disposable(await openAt(socketPath));
    const peer = await connectRaw(door.inner.socketPath);
    peer.send("{x\n");
    expect(await peer.line()).toBe("echo:{x");
    peer.socket.destroy();
  });

  test("a live socket is refused and goes on working", async () => {
    const socketPath = join(directory, "door.sock");
    await using door = disposable(await openAt(socketPath));
    await expect(openAt(socketPath)).rejects.toMatchObject({
      code: "preflight-failed",
      data: { socketPath },
    });
    const peer = await connectRaw(door.inner.socketPath);
    peer.send("{x\n");
    expect(await peer.line()).toBe("echo:{x");
    peer.socket.destroy();
  });

  test("a file and a link to somewhere are never overwritten", async () => {
    const socketPath = join(directory, "door.sock");
    await writeFile(join(directory, "precious"), "data");
    await symlink(join(directory, "precious"), socketPath);
    await expect(openAt(socketPath)).rejects.toMatchObject({ code: "preflight-failed" });
    expect((await lstat(socketPath)).isSymbolicLink()).toBe(true);
  });

  test("a door that closes does not remove a socket that is not its own", async () => {
    const socketPath = join(directory, "door.sock");
    const door = await openAt(socketPath);
    await rm(socketPath);
    const other = createServer().listen(socketPath);
    await once(other, "listening");
    await door.close();
    expect((await lstat(socketPath)).isSocket()).toBe(true);
    other.close();
    await once(other, "close");
  });
});

describe("close", () => {
  test("lets what is in work finish, refuses new ones, ends idle connections", async () => {
    const echo = createEcho();
    const release = echo.hold();
    await using rig = await openRig(echo);
    const [busy, idle, silent] = await Promise.all([1, 2, 3].map(() => connectRaw(rig.socketPath)));
    if (!busy || !idle || !silent) throw new Error("no connection");
    busy.send("{slow\n");
    idle.send("{fast\n");
    expect(await idle.line()).toBe("echo:{fast");
    await expect.poll(() => echo.seen).toContain("{slow");
    const closed = rig.door.close(10_000);
    expect(await idle.rest()).toBe("");
    expect(await silent.rest()).toBe("");
    await expect(connectRaw(rig.socketPath)).rejects.toMatchObject({ code: "ENOENT" });
    busy.send("{late\n");
    release();
    expect(await busy.rest()).toBe("echo:{slow\n");
    await closed;
    expect(echo.seen).not.toContain("{late");
    expect(rig.door.connections).toBe(0);
  });

  test("forces after the grace time, also peers that neither read nor end", async () => {
    const echo = createEcho();
    const release = echo.hold();
    await using rig = await openRig(echo);
    const stuck = await connectRaw(rig.socketPath);
    stuck.send("{slow\n");
    const http = await connectRaw(rig.socketPath);
    http.send("POST /rpc HTTP/1.1\r\nHost: door\r\nContent-Length: 5\r\n\r\n{slow");
    await expect.poll(() => echo.seen).toHaveLength(2);
    await rig.door.close(50);
    expect(rig.door.connections).toBe(0);
    release();
    await stuck.rest();
  });

  test("a closing HTTP connection gets its answer", async () => {
    const echo = createEcho();
    const release = echo.hold();
    await using rig = await openRig(echo);
    const http = await connectRaw(rig.socketPath);
    http.send("POST /rpc HTTP/1.1\r\nHost: door\r\nContent-Length: 5\r\n\r\n{slow");
    await expect.poll(() => echo.seen).toHaveLength(1);
    const closed = rig.door.close(10_000);
    release();
    expect(await http.rest()).toContain("echo:{slow");
    await closed;
  });
});

function disposable(door: Awaited<ReturnType<typeof openDoor>>) {
  return { inner: door, [Symbol.asyncDispose]: () => door.close(100) };
}
