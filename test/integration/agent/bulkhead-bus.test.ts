import { type ExecFileException, execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildAgent } from "../../../scripts/build-agent.ts";
import { BusRefusal, connect, DoorUnreachable } from "../../../src/agent/client.ts";
import { type BusRig, openBusRig } from "../door/door-rig.ts";

interface Ran {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

let directory: string;
let bundle: { outFile: string; bytes: number };
let rig: BusRig;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "bulkhead-agent-"));
  bundle = await buildAgent(join(directory, "bulkhead-bus.mjs"));
  rig = await openBusRig();
});
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

/** Runs the bundle as the container would. */
function bus(args: readonly string[], options: { door?: string; stdin?: string } = {}): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [bundle.outFile, ...args],
      { encoding: "buffer", env: { BULKHEAD_DOOR: options.door ?? rig.socketPath } },
      (error: ExecFileException | null, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr: stderr.toString() });
      },
    );
    child.stdin?.end(options.stdin ?? "");
  });
}

test("the bundle is small and holds no library", async () => {
  expect(bundle.bytes).toBeLessThan(50_000);
  expect((await stat(bundle.outFile)).size).toBe(bundle.bytes);
  expect(await readFile(bundle.outFile, "utf8")).not.toContain("ZodError");
});

describe("commands", () => {
  test.each([
    [["register", "puppet", "2.0"], "register", { name: "puppet", version: "2.0" }],
    [
      ["status", "testing", "running", "--percent", "40"],
      "status",
      { state: "testing", message: "running", percent: 40 },
    ],
    [["progress", "55.5", "half"], "status", { state: "working", message: "half", percent: 55.5 }],
    [["log", "--level", "warn", "größe"], "log", { level: "warn", message: "größe" }],
    [["log", "plain"], "log", { level: "info", message: "plain" }],
    [["error", "broken", "--fatal"], "error", { message: "broken", fatal: true }],
    [["error", "broken"], "error", { message: "broken", fatal: false }],
  ])("%j says nothing and tells the bus", async (args, what, told) => {
    const ran = await bus(args);
    expect([ran.code, ran.stdout.length, ran.stderr]).toEqual([0, 0, ""]);
    expect(rig.port.told).toContainEqual([what, expect.anything(), told]);
  });

  test("get-file keeps every byte, to standard output and to a file", async () => {
    const content = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * 7) % 256));
    rig.port.files.set("auth:bin/x", content);
    expect((await bus(["get-file", "auth", "bin/x"])).stdout.equals(content)).toBe(true);
    const out = join(directory, "saved");
    expect((await bus(["get-file", "auth", "bin/x", "-o", out])).stdout).toHaveLength(0);
    expect((await readFile(out)).equals(content)).toBe(true);
  });

  test("put-artifact keeps every byte, from a file and from standard input", async () => {
    const content = Buffer.from([0, 255, 10, 13, 128, 0]);
    const file = join(directory, "report.bin");
    await writeFile(file, content);
    const ran = await bus(["put-artifact", file]);
    expect(JSON.parse(ran.stdout.toString())).toEqual({ sha256: "s1", bytes: 6 });
    expect(rig.port.told).toContainEqual([
      "putArtifact",
      expect.anything(),
      "report.bin",
      content.toString("base64"),
    ]);
    await bus(["put-artifact", "-", "--name", "in.txt"], { stdin: "piped" });
    expect(rig.port.told).toContainEqual([
      "putArtifact",
      expect.anything(),
      "in.txt",
      Buffer.from("piped").toString("base64"),
    ]);
  });

  test("context, describe, ping and raw print JSON", async () => {
    const json = async (...args: string[]) => JSON.parse((await bus(args)).stdout.toString());
    expect(await json("context")).toEqual({ task: "docs" });
    expect(await json("ping")).toEqual({ pong: true });
    expect((await json("describe")).methods.length).toBe(10);
    expect(await json("raw", "progress", '{"percent":1}')).toEqual({ accepted: true });
  });
});

describe("exit codes", () => {
  test("1: the bus refused, with its words and code", async () => {
    const missing = await bus(["get-file", "auth", "none"]);
    expect([missing.code, missing.stderr]).toEqual([
      1,
      "bulkhead-bus: auth has no file none (no-such-file, code 4004)\n",
    ]);
    const bad = await bus(["progress", "150"]);
    expect([bad.code, bad.stderr]).toEqual([1, expect.stringContaining("percent: got 150")]);
  });

  test("1: an artifact larger than a frame is refused in words, not by a reset", async () => {
    const file = join(directory, "large");
    await writeFile(file, Buffer.alloc(5_000_000));
    const ran = await bus(["put-artifact", file]);
    expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining("frame-too-large, code 4009")]);
  });

  test.each([
    [[]],
    [["nonsense"]],
    [["status"]],
    [["status", "a", "b", "c"]],
    [["status", "a", "--percent", "much"]],
    [["log", "--colour", "x"]],
    [["raw", "ping", "[1]"]],
    [["raw", "ping", "{"]],
    [["put-artifact", "-"]],
    [["put-artifact", "/nonexistent/file"]],
  ])("2: %j is wrong usage", async (args) => {
    const ran = await bus(args);
    expect([ran.code, ran.stdout.length]).toEqual([2, 0]);
    expect(ran.stderr).toContain("bulkhead-bus");
  });

  test("3: no door, a door that ends, a door that is something else", async () => {
    expect(await bus(["ping"], { door: join(directory, "none.sock") })).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("ENOENT"),
    });
    for (const [name, answer] of [
      ["ends", ""],
      ["other", "220 mail ready\n"],
    ] as const) {
      const path = join(directory, `${name}.sock`);
      const server = createServer((socket) => void socket.end(answer)).listen(path);
      expect((await bus(["ping"], { door: path })).code).toBe(3);
      server.close();
    }
  });

  test("0: help has every command and examples", async () => {
    const ran = await bus(["--help"]);
    expect(ran.code).toBe(0);
    const text = ran.stdout.toString();
    for (const word of [
      "register",
      "status",
      "progress",
      "log",
      "error",
      "get-file",
      "put-artifact",
      "context",
      "describe",
      "ping",
      "raw",
      "Examples:",
    ]) {
      expect(text).toContain(word);
    }
  });
});

describe("the library", () => {
  test("matches answers to calls, in whatever order", async () => {
    const client = await connect({ socketPath: rig.socketPath });
    const calls = Array.from({ length: 200 }, (_, index) =>
      index % 2 === 0
        ? client.call("ping", {})
        : client.callRaw("get_file", { task_id: "auth", path: `n${index}` }).catch((error: unknown) => error),
    );
    const answers = await Promise.all(calls);
    for (const [index, answer] of answers.entries()) {
      if (index % 2 === 0) expect(answer).toEqual({ pong: true });
      else expect((answer as BusRefusal).message).toBe(`auth has no file n${index}`);
    }
    client.notify("log", { message: "from a notification" });
    await expect
      .poll(() => rig.port.told.some(([, , entry]) => JSON.stringify(entry)?.includes("from a notification")))
      .toBe(true);
    client.close();
    await client.closed;
    await expect(client.call("ping", {})).rejects.toBeInstanceOf(DoorUnreachable);
  });

  test("tells refusals from a door that is gone", async () => {
    await using own = await openBusRig();
    const client = await connect({ socketPath: own.socketPath });
    await expect(client.call("progress", { percent: 101 })).rejects.toBeInstanceOf(BusRefusal);
    await own.door.close();
    await client.closed;
    await expect(client.call("ping", {})).rejects.toBeInstanceOf(DoorUnreachable);
    await expect(connect({ socketPath: own.socketPath })).rejects.toBeInstanceOf(DoorUnreachable);
  });
});
