import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { LABELS } from "../../../src/sandbox/sandbox.ts";
import { IMAGE, openRig, type Rig } from "./rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await openRig();
});
afterEach(async () => {
  expect(await rig.leftovers()).toEqual([]);
});
afterAll(() => rig.close());

describe("the engine", () => {
  test("says what it is and that it shares this file system", async () => {
    const info = await rig.engine.describe();
    expect(info).toMatchObject({ product: "docker", rootless: false, userBase: 0, sharesFilesystem: true });
    expect(info.cpus).toBeGreaterThan(0);
    expect(info.version).toMatch(/^\d+\./);
  });

  test("gives an image's id, and null for one it does not have", async () => {
    expect((await rig.engine.inspectImage(IMAGE))?.id).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(await rig.engine.inspectImage("bulkhead-no-such-image:1")).toBeNull();
  });

  test("never fetches a missing image: it is a failure with the image's name", async () => {
    const spec = rig.spec(["true"], { image: "bulkhead-no-such-image:1" });
    expect(await rig.refusal(spec)).toEqual({
      reason: "image-missing",
      fault: "host",
      image: "bulkhead-no-such-image:1",
    });
  });

  test("refuses a second container of the same name and leaves the first alone", async () => {
    const spec = rig.spec(["true"]);
    const first = await rig.engine.create(spec);
    const second = await rig.engine.create(spec);
    expect(second).toMatchObject({ ok: false, error: { reason: "host-error", phase: "create" } });
    expect((await rig.engine.list({ [LABELS.state]: rig.stateId })).map(({ name }) => name)).toEqual([
      spec.name,
    ]);
    if (first.ok) await first.value.remove();
  });

  test("finds by all labels asked for, in any state, and removes what an earlier process has made", async () => {
    const created = await rig.engine.create(rig.spec(["true"], { labels: { purpose: "search" } }));
    if (!created.ok) throw new Error("not created");
    const [found] = await rig.engine.list({ [LABELS.state]: rig.stateId, purpose: "search" });
    expect(found).toMatchObject({
      id: created.value.id,
      state: "created",
      labels: { [LABELS.task]: "task" },
    });
    expect(Math.abs(Date.now() - (found?.createdMs ?? 0))).toBeLessThan(60_000);
    expect(await rig.engine.list({ [LABELS.state]: rig.stateId, purpose: "other" })).toEqual([]);
    await Promise.all([rig.engine.removeById(created.value.id), rig.engine.removeById(created.value.id)]);
    await created.value.remove();
  });
});

describe("output", () => {
  test("arrives byte exact, each stream in its own order", async () => {
    const script = `
      import sys
      for i in range(200):
        sys.stdout.buffer.write(bytes(range(256)) + b"o%d" % i); sys.stdout.flush()
        sys.stderr.buffer.write(b"e%d\\x00\\xff" % i); sys.stderr.flush()
    `.replaceAll("\n      ", "\n");
    const { stdout, stderr, exit } = await rig.run(rig.spec(["python3", "-c", script]));
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i)).toString("latin1");
    expect(stdout).toBe(Array.from({ length: 200 }, (_, i) => `${bytes}o${i}`).join(""));
    expect(stderr).toBe(Array.from({ length: 200 }, (_, i) => `e${i}\0\xff`).join(""));
    expect(exit).toMatchObject({ exitCode: 0, failure: null });
  });

  test("of a container of a millisecond is all there, 30 times of 30", async () => {
    const runs = await Promise.all(
      Array.from({ length: 30 }, (_, i) => rig.run(rig.spec(["printf", "%s", `last byte of ${i}.`]))),
    );
    expect(runs.map(({ stdout }) => stdout)).toEqual(
      Array.from({ length: 30 }, (_, i) => `last byte of ${i}.`),
    );
  });

  test("of 200 MB through a receiver that lags costs flat memory and loses nothing", async () => {
    const total = 200_000_000;
    const line = "0123456789".repeat(50);
    const created = await rig.engine.create(rig.spec(["sh", "-c", `yes ${line} | head -c ${total}`]));
    if (!created.ok) throw new Error("not created");
    const hash = createHash("sha256");
    let bytes = 0;
    let peak = 0;
    const before = process.memoryUsage.rss();
    const started = await created.value.start(
      async (chunk) => {
        hash.update(chunk.bytes);
        bytes += chunk.bytes.length;
        peak = Math.max(peak, process.memoryUsage.rss());
        await new Promise(setImmediate);
      },
      { strict: false },
    );
    if (!started.ok) throw new Error("not started");
    const { failure } = await started.value.ended;
    await created.value.remove();
    expect(failure).toBeNull();
    expect(bytes).toBe(total);
    const expected = createHash("sha256").update(Buffer.alloc(total, `${line}\n`));
    expect(hash.digest("hex")).toBe(expected.digest("hex"));
    expect(peak - before).toBeLessThan(100_000_000);
  });

  test("a receiver that fails does not stall the container", async () => {
    const created = await rig.engine.create(rig.spec(["sh", "-c", "yes | head -c 5000000"]));
    if (!created.ok) throw new Error("not created");
    const started = await created.value.start(
      () => {
        throw new Error("disk of the log is full");
      },
      { strict: false },
    );
    if (!started.ok) throw new Error("not started");
    expect(await started.value.ended).toMatchObject({ exitCode: 0, failure: null });
    await created.value.remove();
  });

  test("held open by a daemon of the container does not keep it from ending", async () => {
    const startedMs = performance.now();
    const { stdout, exit } = await rig.run(rig.spec(["sh", "-c", "setsid sleep 300 & echo started"]));
    expect(stdout).toBe("started\n");
    expect(exit.exitCode).toBe(0);
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });
});

describe("the command", () => {
  test.each([0, 1, 3, 42, 124, 255])("ends with its own code %i", async (code) => {
    const { exit } = await rig.run(rig.spec(["sh", "-c", `exit ${code}`], { innerTimeoutMs: 60_000 }));
    expect(exit.exitCode).toBe(code);
    expect(exit.failure).toEqual(code === 0 ? null : { reason: "exit", fault: "agent", exitCode: code });
    expect(exit.mainMs).toBeGreaterThanOrEqual(0);
  });

  test("gets its arguments as they are, and a file as standard input", async () => {
    writeFileSync(`${rig.directory}/prompt`, "from a file", { mode: 0o644 });
    const spec = rig.spec(["sh", "-c", 'cat; printf "|%s" "$@"', "sh", "a b", '"$HOME"', "", "-x"], {
      mounts: [{ type: "bind", source: `${rig.directory}/prompt`, target: "/run/prompt", readOnly: true }],
      stdinPath: "/run/prompt",
      innerTimeoutMs: 60_000,
    });
    expect((await rig.run(spec)).stdout).toBe('from a file|a b|"$HOME"||-x');
  });

  test("reads an empty standard input where none was given", async () => {
    expect((await rig.run(rig.spec(["wc", "-c"]))).stdout).toBe("0\n");
  });

  test.each([
    ["no such program", "no-such-program", {}],
    ["no such path", "/opt/none/tool", {}],
    ["no such program under a time limit", "no-such-program", { innerTimeoutMs: 60_000 }],
    ["a file that is not executable", "/etc/passwd", {}],
  ])("%s is told as such", async (_, command, over) => {
    const { exit } = await rig.run(rig.spec([command], over));
    expect(exit.failure).toMatchObject({ reason: "command-not-found", fault: "task", command });
  });

  test("a shell that ends with 127 for a command of its own is no missing command", async () => {
    const { exit } = await rig.run(rig.spec(["sh", "-c", "no-such-program"]));
    expect(exit.failure).toEqual({ reason: "exit", fault: "agent", exitCode: 127 });
  });

  test("shows what it uses while it runs and in the end", async () => {
    const { exit } = await rig.run(
      rig.spec(["python3", "-c", "x = bytearray(40 << 20); input()"], { stdinPath: "/tmp/none" }),
    );
    expect(exit.exitCode).not.toBe(0);
    const busy = rig.spec([
      "python3",
      "-c",
      "import time\nx = bytearray(40 << 20); print('up', flush=True); time.sleep(60)",
    ]);
    const ran = await rig.run(busy, async (running) => {
      let sample = await running.sample();
      const deadlineMs = performance.now() + 10_000;
      while ((sample.memoryBytes ?? 0) < 40 << 20 && performance.now() < deadlineMs) {
        await new Promise(setImmediate);
        sample = await running.sample();
      }
      expect(sample.memoryBytes).toBeGreaterThan(40 << 20);
      expect(sample.pids).toBeGreaterThanOrEqual(2);
      await running.kill("cancelled");
    });
    expect(ran.exit.use.peakMemoryBytes).toBeGreaterThan(40 << 20);
    expect(ran.exit.use.cpuMs).toBeGreaterThan(0);
  });
});
