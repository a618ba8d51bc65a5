import { describe, expect, test } from "vitest";
import { type BusLimits, createCallerBus } from "../../../src/bus/caller-bus.ts";
import { BUS_METHODS, type BusMethodName } from "../../../src/protocol/bus-methods.ts";
import { attemptKey, createMemoryPort, type MemoryPort } from "./memory-port.ts";

interface Reply {
  id: unknown;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data: Record<string, unknown> };
}

function createRig(limits: Partial<BusLimits> = {}, port: MemoryPort = createMemoryPort()) {
  const logged: object[] = [];
  const quiet = () => undefined;
  const logger = { debug: quiet, info: quiet, warn: quiet, error: (data: object) => void logged.push(data) };
  const bus = createCallerBus(attemptKey("docs"), port, logger, limits);
  const call = async (method: string, params?: unknown, id: unknown = 1): Promise<Reply> => {
    const text = await bus.frame(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    if (text === undefined) throw new Error("no reply");
    return JSON.parse(text) as Reply;
  };
  return { bus, port, call, logged };
}

const GOOD_CALLS: ReadonlyArray<[BusMethodName, Record<string, unknown> | undefined]> = [
  ["register", { name: "puppet", version: "1" }],
  ["status", { state: "planning", message: "m", percent: 5 }],
  ["progress", { percent: 50 }],
  ["log", { message: "hello" }],
  ["error", { message: "bad", fatal: true }],
  ["get_file", { task_id: "auth", path: "src/a.ts" }],
  ["put_artifact", { name: "a.txt", content: "x" }],
  ["context", undefined],
  ["describe", {}],
  ["ping", undefined],
];

describe("methods", () => {
  test.each(GOOD_CALLS)(
    "%s answers what its schema promises and is recorded with id and time",
    async (method, params) => {
      const { call, port } = createRig();
      port.files.set("auth:src/a.ts", Buffer.from("text"));
      const reply = await call(method, params, `id-${method}`);
      expect(reply.error).toBeUndefined();
      expect(reply.id).toBe(`id-${method}`);
      expect(BUS_METHODS[method].result.safeParse(reply.result).success).toBe(true);
      expect(port.records).toEqual([
        { method, requestId: `id-${method}`, tookMs: expect.any(Number), errorCode: null },
      ]);
      expect(port.records[0]?.tookMs).toBeGreaterThanOrEqual(0);
    },
  );

  test("the list above is every method", () => {
    expect(GOOD_CALLS.map(([method]) => method)).toEqual(Object.keys(BUS_METHODS));
  });

  test("progress is status with the state working", async () => {
    const { call, port } = createRig();
    await call("progress", { percent: 30, message: "a third" });
    expect(port.told[0]).toEqual([
      "status",
      attemptKey("docs"),
      { state: "working", message: "a third", percent: 30 },
    ]);
  });

  test("a file comes as text where it is text, else as base64, and as asked", async () => {
    const { call, port } = createRig();
    const binary = Buffer.from([0xff, 0x00, 0x0a]);
    port.files.set("a:t", Buffer.from("größe"));
    port.files.set("a:b", binary);
    const get = (path: string, encoding?: string) => call("get_file", { task_id: "a", path, encoding });
    expect((await get("t")).result).toMatchObject({
      content: "größe",
      encoding: "utf8",
      blob: "b1",
      mode: "100644",
    });
    expect((await get("b")).result).toMatchObject({ content: binary.toString("base64"), encoding: "base64" });
    expect((await get("t", "base64")).result).toMatchObject({ encoding: "base64" });
    expect((await get("b", "utf8")).error?.data["reason"]).toBe("not-text");
    expect((await get("none")).error).toMatchObject({ code: 4004, message: "a has no file none" });
  });

  test("a notification is performed, recorded and not answered, not even with an error", async () => {
    const { bus, port } = createRig();
    expect(await bus.frame('{"jsonrpc":"2.0","method":"log","params":{"message":"x"}}')).toBeUndefined();
    expect(await bus.frame('{"jsonrpc":"2.0","method":"nope"}')).toBeUndefined();
    expect(port.told[0]?.[0]).toBe("log");
    expect(port.records.map(({ requestId, errorCode }) => [requestId, errorCode])).toEqual([
      [null, null],
      [null, -32601],
    ]);
  });
});

describe("who is calling", () => {
  test("is the door's caller in every call to the port", async () => {
    const { call, port } = createRig();
    for (const [method, params] of GOOD_CALLS) await call(method, params);
    expect(port.told.length).toBeGreaterThan(GOOD_CALLS.length);
    for (const [, caller] of port.told) expect(caller).toEqual(attemptKey("docs"));
  });

  test("cannot be said in params", async () => {
    const { call, port } = createRig();
    for (const [method, params] of GOOD_CALLS) {
      for (const field of ["caller", "taskId", "run_id", "attempt", "__proto__", "constructor"]) {
        // Built as text: an object literal would set the prototype instead of a field.
        const own = Object.entries(params ?? {}).map(
          ([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`,
        );
        const spoofed = `{${[...own, `${JSON.stringify(field)}:{"taskId":"other"}`].join(",")}}`;
        const reply = await call(method, JSON.parse(spoofed));
        expect([method, field, reply.error?.code]).toEqual([method, field, -32602]);
      }
    }
    expect(port.told.filter(([what]) => what !== "record")).toEqual([]);
  });
});

describe("refusals", () => {
  test("unknown methods name the nearest", async () => {
    const { call, port } = createRig();
    expect((await call("getFile", {})).error).toMatchObject({
      code: -32601,
      message: 'there is no method "getFile"; did you mean "get_file"?',
    });
    for (const name of ["constructor", "__proto__", "toString", "x".repeat(128)]) {
      expect((await call(name)).error?.code).toBe(-32601);
    }
    expect(new Set(port.records.map(({ method }) => method))).toEqual(new Set(["(unknown)"]));
  });

  test("bad params name field, value and what is allowed, shortly", async () => {
    const { call } = createRig();
    const { error } = await call("status", { state: "x".repeat(10_000), percent: 150, extra: 1 });
    expect(error?.code).toBe(-32602);
    const issues = error?.data["issues"] as Array<Record<string, string>>;
    expect(new Set(issues.map(({ field }) => field))).toEqual(new Set(["state", "percent", "params"]));
    expect(issues.find(({ field }) => field === "percent")).toMatchObject({
      got: "150",
      allowed: expect.stringContaining("100"),
    });
    expect(issues.find(({ field }) => field === "params")).toMatchObject({
      got: '"extra"',
      allowed: "the fields are state, message, percent",
    });
    expect(JSON.stringify(error).length).toBeLessThan(1500);
    expect((await call("status")).error?.message).toContain("state: got nothing");
    expect((await call("ping", { a: 1 })).error?.message).toContain("the method takes no params");
    expect((await call("ping", [])).error?.code).toBe(-32602);
  });

  test("deeply nested params are refused without a crash", async () => {
    const { bus } = createRig();
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const text = await bus.frame(`{"jsonrpc":"2.0","id":1,"method":"log","params":{"message":${deep}}}`);
    expect(text).toContain("-32602");
  });

  test("a bug on our side is -32603 with an id and without any detail", async () => {
    const port: MemoryPort = {
      ...createMemoryPort(),
      reportStatus: () => Promise.reject(new Error("ENOENT: /home/user/.secret")),
      context: async () => 10n,
    };
    const { call, logged } = createRig({}, port);
    for (const [method, params] of [
      ["status", { state: "x" }],
      ["context", {}],
    ] as const) {
      const { error } = await call(method, params);
      expect(error?.code).toBe(-32603);
      expect(JSON.stringify(error)).not.toMatch(/secret|home|ENOENT|BigInt|\.ts/);
      const id = error?.data["correlationId"];
      expect(logged).toContainEqual(expect.objectContaining({ correlationId: id, method }));
    }
  });

  test("a log that fails costs nobody an answer", async () => {
    const port: MemoryPort = {
      ...createMemoryPort(),
      record: () => {
        throw new Error("disk full");
      },
    };
    const { call, logged } = createRig({}, port);
    expect((await call("ping")).result).toEqual({ pong: true });
    expect(logged).toHaveLength(1);
  });

  test("a failure of every call does not flood the supervisor's log", async () => {
    const port: MemoryPort = { ...createMemoryPort(), context: () => Promise.reject(new Error("broken")) };
    const { call, logged } = createRig({}, port);
    const replies = await Promise.all(Array.from({ length: 500 }, () => call("context")));
    expect(replies.every(({ error }) => error?.code === -32603)).toBe(true);
    expect(logged.length).toBeGreaterThanOrEqual(20);
    expect(logged.length).toBeLessThan(25);
  });

  test("frames that are no call are recorded too", async () => {
    const { bus, port } = createRig();
    for (const text of ["garbage", "[]", "{}"]) await bus.frame(text);
    expect(port.records.map(({ method, errorCode }) => [method, errorCode])).toEqual([
      ["(not a call)", -32700],
      ["(not a call)", -32600],
      ["(not a call)", -32600],
    ]);
  });
});

describe("bounds", () => {
  test("a file over the cap is too-large, and so is an answer that grows by escaping", async () => {
    const { call, port } = createRig({ maxFileBytes: 1000, maxReplyChars: 3000 });
    port.files.set("a:big", Buffer.alloc(1001));
    port.files.set("a:nul", Buffer.alloc(1000));
    expect((await call("get_file", { task_id: "a", path: "big" })).error).toMatchObject({
      code: 4005,
      data: { bytes: 1001, limitBytes: 1000 },
    });
    expect((await call("get_file", { task_id: "a", path: "nul" })).error?.message).toContain("base64");
    expect((await call("get_file", { task_id: "a", path: "nul", encoding: "base64" })).error).toBeUndefined();
  });

  test("artifacts are counted, and a refused one is not", async () => {
    const { call } = createRig({ maxArtifacts: 2, maxArtifactBytesInAll: 10 });
    const put = async (name: string, content: string) =>
      (await call("put_artifact", { name, content })).error?.code;
    expect(await put("full", "12345")).toBe(4007);
    expect(await put("a", "12345")).toBeUndefined();
    expect(await put("b", "123456")).toBe(4007);
    expect(await put("b", "12345")).toBeUndefined();
    expect(await put("c", "")).toBe(4007);
    expect(await put("a", "1")).toBeUndefined();
  });

  test("artifact bytes arrive exactly; what is not base64 is refused", async () => {
    const { call, port } = createRig();
    const bytes = Buffer.from([0, 255, 10, 13, 128]);
    await call("put_artifact", { name: "bin", content: bytes.toString("base64"), encoding: "base64" });
    expect(port.told[0]?.[3]).toBe(bytes.toString("base64"));
    for (const content of ["a", "####", "AAA", "AA==\n"]) {
      const reply = await call("put_artifact", { name: "bin", content, encoding: "base64" });
      expect(reply.error?.code).toBe(-32602);
    }
  });

  test("calls over the rate are refused with a hint, logged once a second, and let in again later", async () => {
    const { call, port } = createRig({ callsPerSecond: 50, callBurst: 10 });
    const replies = await Promise.all(Array.from({ length: 40 }, () => call("ping")));
    const refused = replies.filter(({ error }) => error?.code === 4008);
    expect(refused).toHaveLength(30);
    for (const { error } of refused) {
      expect(error?.data["retryAfterMs"]).toBeGreaterThan(0);
      expect(error?.data["retryAfterMs"]).toBeLessThanOrEqual(20);
    }
    expect(port.records.filter(({ errorCode }) => errorCode === 4008)).toHaveLength(1);
    await expect.poll(async () => (await call("ping")).error?.code).toBeUndefined();
  });

  test("sent bytes have a rate of their own", async () => {
    const { call } = createRig({ sentCharsPerSecond: 1000, sentCharsBurst: 20_000 });
    const send = async () => (await call("log", { message: "x".repeat(9000) })).error?.code;
    expect([await send(), await send(), await send()]).toEqual([undefined, undefined, 4008]);
  });
});
