import Docker from "dockerode";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ENDPOINT, MIB, openRig, type Rig } from "./rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await openRig();
});
afterAll(async () => {
  expect(await rig.leftovers()).toEqual([]);
  await rig.close();
});

const HOG = "x = bytearray(200 << 20)";

describe("the cause of an end", () => {
  test("memory, the main process", async () => {
    const { exit } = await rig.run(rig.spec(["python3", "-c", HOG], { caps: { memoryBytes: 48 * MIB } }));
    expect(exit.failure).toMatchObject({
      reason: "oom",
      victim: "main",
      limitBytes: 48 * MIB,
      exitCode: 137,
    });
    expect(exit.use.peakMemoryBytes).toBeGreaterThan(40 * MIB);
    expect(exit.use.peakMemoryBytes).toBeLessThanOrEqual(48 * MIB);
    expect(exit.use.oomKills).toBeGreaterThan(0);
  });

  test.each([0, 7])("memory, only a child, the main process ends with %i", async (code) => {
    const spec = rig.spec(["sh", "-c", `python3 -c '${HOG}'; exit ${code}`], {
      caps: { memoryBytes: 48 * MIB },
    });
    const { exit } = await rig.run(spec);
    expect(exit.failure).toMatchObject({ reason: "oom", victim: "child", exitCode: code });
  });

  test("refused forks", async () => {
    const { exit } = await rig.run(
      rig.spec(["sh", "-c", "for i in $(seq 60); do sleep 5 & done"], { caps: { pids: 20 } }),
    );
    expect(exit.failure).toMatchObject({ reason: "pids", limit: 20, exitCode: 2 });
    expect(exit.use).toMatchObject({ peakPids: 20 });
    expect(exit.use.pidsDenied).toBeGreaterThan(0);
  });

  test("as many processes as allowed are no refusal", async () => {
    // init, sh and 18 sleeps are 20.
    const script = "i=0; while [ $i -lt 18 ]; do sleep 0.2 & i=$((i+1)); done; wait; exit 3";
    const { exit } = await rig.run(rig.spec(["sh", "-c", script], { caps: { pids: 20 } }));
    expect(exit.failure).toEqual({ reason: "exit", fault: "agent", exitCode: 3 });
    expect(exit.use).toMatchObject({ peakPids: 20, pidsDenied: 0 });
  });

  test("the time limit in the container, also where the program ignores SIGTERM", async () => {
    const polite = rig.run(rig.spec(["sleep", "60"], { innerTimeoutMs: 1_000 }));
    const stubborn = rig.run(
      rig.spec(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], { innerTimeoutMs: 1_000 }),
    );
    for (const { exit } of await Promise.all([polite, stubborn])) {
      expect(exit.failure).toEqual({ reason: "timeout", fault: "agent", limitMs: 1_000, by: "container" });
      expect([124, 137]).toContain(exit.exitCode);
    }
  });

  test("124 of the program itself is no time limit", async () => {
    const { exit } = await rig.run(rig.spec(["sh", "-c", "exit 124"], { innerTimeoutMs: 5_000 }));
    expect(exit.failure).toEqual({ reason: "exit", fault: "agent", exitCode: 124 });
  });

  test.each(["timeout", "cancelled"] as const)("a kill because of %s", async (because) => {
    const { exit } = await rig.run(rig.spec(["sleep", "60"]), (running) => running.kill(because));
    expect(exit.failure).toMatchObject({ reason: because });
    expect(exit.exitCode).toBe(137);
  });

  test("an end by SIGTERM that was asked for, and a kill that comes too late", async () => {
    const script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    const { exit, stdout } = await rig.run(rig.spec(["sh", "-c", script]), async (running) => {
      const deadlineMs = performance.now() + 10_000;
      while (((await running.sample()).pids ?? 0) < 3 && performance.now() < deadlineMs)
        await new Promise(setImmediate);
      await running.terminate();
      await running.ended;
      await running.kill("timeout");
      await running.terminate();
    });
    expect(stdout).toBe("up\nbye\n");
    expect(exit).toMatchObject({ exitCode: 0, failure: null });
  });

  test.each([
    ["KILL", 137],
    ["TERM", 143],
  ])("SIG%s sent by the task to itself is its own end", async (signal, exitCode) => {
    const { exit } = await rig.run(rig.spec(["sh", "-c", `kill -${signal} $$`]));
    expect(exit.failure).toEqual({ reason: "exit", fault: "agent", exitCode, signal: `SIG${signal}` });
  });

  test.each(["SIGKILL", "SIGTERM"])(
    "%s that somebody else has the engine send is a fault of the host",
    async (signal) => {
      const { exit } = await rig.run(rig.spec(["sleep", "60"]), async ({ id }) => {
        await new Docker({ socketPath: ENDPOINT.replace("unix://", "") }).getContainer(id).kill({ signal });
      });
      expect(exit.failure).toEqual({ reason: "killed", fault: "host", signal, evidence: "engine-order" });
    },
  );

  test.each([
    ["/tmp", "bytes", "head -c 20000000 /dev/zero > /tmp/f"],
    ["/home/agent", "bytes", "head -c 20000000 /dev/zero > $HOME/f"],
    ["/tmp", "files", "i=0; while : > /tmp/$i; do i=$((i+1)); done"],
  ])("%s full of %s", async (place, of, script) => {
    const { exit } = await rig.run(
      rig.spec(["sh", "-c", `sleep 0.2; ${script}`], { caps: { tmpBytes: 4 * MIB } }),
    );
    expect(exit.failure).toMatchObject({
      reason: "disk-full",
      fault: "agent",
      limitBytes: 4 * MIB,
      cap: "tmp",
      place,
      of,
      by: "kernel",
    });
    const { peakBytes } = exit.failure as { peakBytes: number };
    if (of === "bytes") expect(peakBytes).toBe(4 * MIB);
    else expect(peakBytes).toBeLessThan(MIB);
  });

  test("a full /tmp that the program copes with is no failure", async () => {
    const script = "sleep 0.2; head -c 20000000 /dev/zero > /tmp/f || exit 0; exit 9";
    const { exit } = await rig.run(rig.spec(["sh", "-c", script], { caps: { tmpBytes: 4 * MIB } }));
    expect(exit).toMatchObject({ exitCode: 0, failure: null });
  });

  test("a crash has its signal", async () => {
    const { exit } = await rig.run(rig.spec(["sh", "-c", "kill -SEGV $$"]));
    expect(exit.failure).toEqual({ reason: "exit", fault: "agent", exitCode: 139, signal: "SIGSEGV" });
  });

  test("removal by someone else while it runs", async () => {
    const { exit } = await rig.run(rig.spec(["sleep", "60"]), (running) => rig.engine.removeById(running.id));
    expect(["host-error", "killed"]).toContain(exit.failure?.reason);
  });
});
