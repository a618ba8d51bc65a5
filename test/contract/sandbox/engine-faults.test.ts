import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runIdSchema, taskIdSchema } from "../../../src/model/ids.ts";
import { createDockerEngine } from "../../../src/sandbox/docker/docker-engine.ts";
import type { Engine, RunningSandbox, SandboxSpec } from "../../../src/sandbox/sandbox.ts";
import { type FakeEngine, openFakeEngine } from "./fake-engine.ts";

const SPEC: SandboxSpec = {
  key: { runId: runIdSchema.parse("20261130-142501-3f9a2c"), taskId: taskIdSchema.parse("t"), attempt: 1 },
  stateId: "0123456789abcdef",
  name: "one",
  image: "fake:1",
  argv: ["work"],
  stdinPath: null,
  env: {},
  uid: 10_001,
  workingDir: "/",
  mounts: [],
  caps: {
    cpus: 1,
    memoryBytes: 1_000_000,
    swapBytes: 0,
    pids: 10,
    openFiles: 10,
    diskBytes: null,
    tmpBytes: 1_000_000,
    ioReadBytesPerSecond: null,
    ioWriteBytesPerSecond: null,
    ioReadOpsPerSecond: null,
    ioWriteOpsPerSecond: null,
  },
  innerTimeoutMs: 0,
  ioDevicePath: null,
  labels: {},
};
const LOST_AFTER_MS = 400;

let directory: string;
let fake: FakeEngine;
let engine: Engine;
let output: string;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "bulkhead-fake-"));
  fake = await openFakeEngine(directory);
  output = "";
  const quiet = () => undefined;
  engine = await createDockerEngine({
    endpoint: fake.endpoint,
    logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    probeDir: directory,
    engineLostAfterMs: LOST_AFTER_MS,
  });
});
afterEach(async () => {
  await engine.close();
  await fake.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function start(): Promise<RunningSandbox> {
  const created = await engine.create(SPEC);
  if (!created.ok) throw new Error(JSON.stringify(created.error));
  const started = await created.value.start(
    (chunk) => {
      output += chunk.bytes.toString();
    },
    { strict: false },
  );
  if (!started.ok) throw new Error(JSON.stringify(started.error));
  return started.value;
}

describe("with an engine that misbehaves", () => {
  test("a plain end is told once, with the output before it", async () => {
    const running = await start();
    fake.print("one", "hello");
    fake.finish("one", 3);
    expect(await running.ended).toMatchObject({ exitCode: 3, failure: { reason: "exit" }, mainMs: 0 });
    expect(output).toBe("hello");
    expect(fake.requests.indexOf("POST /containers/ID/attach")).toBeLessThan(
      fake.requests.indexOf("POST /containers/ID/start"),
    );
  });

  test("a wait that dies after its headers is made good by the event", async () => {
    fake.faults.breakWait = true;
    const running = await start();
    await expect.poll(() => fake.requests).toContain("POST /containers/ID/wait");
    fake.finish("one", 0);
    expect(await running.ended).toMatchObject({ exitCode: 0, failure: null });
  });

  test("silent events are made good by the wait", async () => {
    fake.faults.muteEvents = true;
    const running = await start();
    fake.finish("one", 0);
    expect((await running.ended).failure).toBeNull();
  });

  test("an end while the engine was away is found when it is back", async () => {
    const running = await start();
    await fake.stop();
    fake.finish("one", 5);
    await fake.restart();
    expect(await running.ended).toMatchObject({ exitCode: 5, failure: { reason: "exit" } });
  });

  test("a container that goes on after a restart of the engine is still waited for", async () => {
    const running = await start();
    await fake.stop();
    await fake.restart();
    await expect.poll(() => fake.requests.filter((one) => one === "GET /events").length).toBe(2);
    fake.finish("one", 0);
    expect((await running.ended).failure).toBeNull();
  });

  test("an engine that stays away is lost, within the bound", async () => {
    const running = await start();
    const startedMs = performance.now();
    await fake.stop();
    const exit = await running.ended;
    expect(exit.failure).toMatchObject({ reason: "engine-lost", fault: "host", phase: "wait" });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(LOST_AFTER_MS);
    expect(performance.now() - startedMs).toBeLessThan(LOST_AFTER_MS * 5);
    await running.kill("timeout");
  });

  test("a create whose answer was lost is taken over, not made twice", async () => {
    fake.faults.breakCreate = true;
    const created = await engine.create(SPEC);
    expect(created).toMatchObject({ ok: true, value: { id: fake.containers.get("one")?.id } });
    expect(fake.requests.filter((one) => one === "POST /containers/create")).toHaveLength(1);
    if (created.ok) await created.value.remove();
    expect(fake.containers.size).toBe(0);
  });

  test("a container of someone else under the name is not taken over", async () => {
    await engine.create({ ...SPEC, stateId: "another" });
    expect(await engine.create(SPEC)).toMatchObject({
      ok: false,
      error: { reason: "host-error", phase: "create" },
    });
  });

  test("a create that never got through is an engine lost", async () => {
    await fake.stop();
    // The image is asked for first; an engine away then is the caller's to hear of as well.
    expect(await engine.create(SPEC)).toMatchObject({
      ok: false,
      error: { reason: "engine-lost", phase: "create" },
    });
  });

  test("a start whose answer was lost goes on", async () => {
    fake.faults.breakStart = true;
    const running = await start();
    fake.finish("one", 0);
    expect((await running.ended).failure).toBeNull();
  });

  test("a kill while the engine is away reaches the container when it is back", async () => {
    const running = await start();
    await fake.stop();
    const killed = running.kill("timeout");
    await fake.restart();
    await killed;
    expect(await running.ended).toMatchObject({ exitCode: 137, failure: { reason: "timeout", by: "host" } });
  });

  test("closing the connection ends the waiting", async () => {
    const running = await start();
    await engine.close();
    expect((await running.ended).failure).toMatchObject({ reason: "engine-lost" });
  });

  test("caps of an engine elsewhere are not claimed", async () => {
    const running = await start();
    const memory = running.caps.find(({ cap }) => cap === "memory");
    expect(memory).toMatchObject({
      state: "not-enforced",
      actual: null,
      note: expect.stringContaining("not readable"),
    });
    fake.finish("one", 0);
    await running.ended;
  });

  test("an endpoint nobody listens on is told as unreachable", async () => {
    await fake.stop();
    const quiet = () => undefined;
    const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
    await expect(
      createDockerEngine({ endpoint: fake.endpoint, logger, probeDir: directory }),
    ).rejects.toMatchObject({ code: "engine-unreachable" });
    await expect(
      createDockerEngine({ endpoint: "ftp://x", logger, probeDir: directory }),
    ).rejects.toMatchObject({ code: "config-invalid" });
  });
});
