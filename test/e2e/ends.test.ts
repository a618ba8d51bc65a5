/** Every way for a task to end, side by side in one run: the typed cause, and the words a person reads (row P7). */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunViewJson } from "../../src/observe/run-view-json.ts";
import { type CliResult, createRepository, createRig, type Rig } from "../support/bulkhead-cli.ts";
import { endRig, outputOf, readEvents, SMALL, statusOf, taskOf, writePlan } from "../support/e2e-rig.ts";

const MIB = 1024 ** 2;
/** A program name that no other process of this machine has: the tests look for it in /proc. */
const MARKER = `bh-grandchild-${process.pid}`;

const TASKS = [
  { id: "exit-code", run: "echo half way; echo 'it broke: grün' >&2; exit 3" },
  { id: "fine", run: "echo ok > result.txt" },
  { id: "no-change", run: "true" },
  {
    id: "timeout",
    timeout: "6s",
    // The grandchild leaves the session and ignores what can be ignored.
    run: `cp /bin/sleep /tmp/${MARKER}; setsid sh -c "trap '' TERM HUP INT; /tmp/${MARKER} 300" & echo started; trap '' TERM; sleep 300 & wait; sleep 300`,
  },
  {
    id: "oom-main",
    caps: { memory: "32m" },
    run: 'exec python3 -c "x = bytearray(200 * 1024 * 1024); print(len(x))"',
  },
  {
    id: "oom-child",
    caps: { memory: "32m" },
    run: 'python3 -c "x = bytearray(200 * 1024 * 1024)" || echo "a child died, going on"; exit 0',
  },
  {
    id: "pids",
    caps: { pids: 16 },
    shell: "bash",
    run: "for i in $(seq 40); do sleep 5 & done; wait; exit 9",
  },
  { id: "not-found", agent: "missing", command: "--file README.md" },
  { id: "fatal", run: "bulkhead-bus error 'no credentials for the model' --fatal; exit 0" },
  { id: "daemon", run: "setsid sleep 300 & echo parent done; exit 0" },
  {
    id: "signal",
    run: "kill -SEGV $$",
  },
  { id: "needs-fatal", depends_on: ["fatal"], run: "true" },
];

describe("ends of tasks in one run", () => {
  let rig: Rig;
  let ran: CliResult;
  let status: RunViewJson;
  let tookMs: number;

  beforeAll(async () => {
    rig = createRig();
    const repository = createRepository(join(rig.root, "repo"), { "README.md": "hello\n" });
    const plan = writePlan(rig, {
      defaults: SMALL,
      agents: { missing: { argv: ["no-such-agent"] } },
      tasks: TASKS,
    });
    const began = performance.now();
    ran = await rig.run(["run", plan, "--slots", "12"], { cwd: repository });
    tookMs = performance.now() - began;
    status = await statusOf(rig);
  });
  afterAll(() => endRig(rig));

  const failureOf = (id: string) => taskOf(status, id).failure;
  /** The report's lines on one task. */
  const reportOn = (id: string): string => {
    const lines = ran.stdout.split("\n");
    const first = lines.findIndex((line) => line.startsWith(`  ✗ ${id}: `));
    if (first === -1) throw new Error(`the report does not name ${id}:\n${ran.stdout}`);
    const rest = lines.slice(first + 1);
    const length = rest.findIndex((line) => !line.startsWith("      "));
    return [lines[first], ...rest.slice(0, length)].join("\n");
  };

  test("the run fails with exit code 1, since every fault is the work's own", () => {
    expect(ran.code, ran.stderr).toBe(1);
    expect(ran.stderr).toBe("");
    expect(status.counts).toMatchObject({ succeeded: 3, failed: 8, held: 1 });
    expect(tookMs).toBeLessThan(60_000);
  });

  test("an exit code, with what went to standard error in the log", async () => {
    expect(failureOf("exit-code")).toMatchObject({
      reason: "exit",
      fault: "agent",
      data: { exitCode: 3 },
      headline: "ended with exit code 3",
    });
    // Two streams have no order between them.
    const lines = (await outputOf(rig, "exit-code")).split("\n").filter((line) => line !== "");
    expect(lines.toSorted()).toEqual(["half way", "it broke: grün"]);
    expect(reportOn("exit-code")).toContain("ended with exit code 3");
    expect(reportOn("exit-code")).toContain("next: `bulkhead logs` shows its output");
  });

  test("success with and without a change", () => {
    expect(taskOf(status, "fine").patch).toMatchObject({ empty: false, files: 1, insertions: 1 });
    expect(taskOf(status, "no-change")).toMatchObject({ state: "succeeded", patch: { empty: true } });
    expect(ran.stdout).toMatch(/✓ no-change\s+no changes/);
  });

  test("a time limit by the host; a grandchild in another session is gone too", async () => {
    expect(failureOf("timeout")).toMatchObject({
      reason: "timeout",
      fault: "agent",
      data: { limitMs: 6000, by: "host" },
      headline: "time limit of 6s passed",
    });
    expect(await outputOf(rig, "timeout")).toContain("started\n");
    const { started_ms: began, ended_ms: ended } = taskOf(status, "timeout");
    expect((ended ?? 0) - (began ?? 0)).toBeGreaterThanOrEqual(6000);
    expect(reportOn("timeout")).toContain("Stopped by the supervisor with everything it had started.");
    const alive = readdirSync("/proc").filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith(`/tmp/${MARKER}\0`);
      } catch {
        return false;
      }
    });
    expect(alive).toEqual([]);
  });

  test("out of memory, the main process", () => {
    expect(failureOf("oom-main")).toMatchObject({
      reason: "oom",
      fault: "agent",
      data: { victim: "main", limitBytes: 32 * MIB, exitCode: 137 },
    });
    expect(reportOn("oom-main")).toMatch(/✗ oom-main: out of memory: cap 32 MiB, peak 3\d(\.\d)? MiB/);
    expect(reportOn("oom-main")).toContain("next: raise caps.memory above 32 MiB");
  });

  test("out of memory, a child, although the parent ended with 0", async () => {
    expect(failureOf("oom-child")).toMatchObject({ reason: "oom", data: { victim: "child", exitCode: 0 } });
    expect(await outputOf(rig, "oom-child")).toContain("a child died, going on");
    expect(reportOn("oom-child")).toContain("which then ended with exit code 0");
  });

  test("the process limit", () => {
    const failure = failureOf("pids");
    expect(failure).toMatchObject({ reason: "pids", fault: "agent", data: { limit: 16 } });
    expect(failure?.data).toHaveProperty("denied", expect.any(Number));
    expect(reportOn("pids")).toMatch(/process limit of 16 reached: \d+ forks? (was|were) refused/);
  });

  test("a command that the image does not have", () => {
    expect(failureOf("not-found")).toMatchObject({
      reason: "command-not-found",
      fault: "task",
      data: { command: "no-such-agent", exitCode: 127 },
    });
    expect(reportOn("not-found")).toContain("no such command in the image: no-such-agent");
  });

  test("an agent that reports a fatal error and ends with 0", () => {
    expect(failureOf("fatal")).toMatchObject({
      reason: "agent-error",
      fault: "agent",
      data: { message: "no credentials for the model" },
    });
    expect(reportOn("fatal")).toContain("the agent gave up: no credentials for the model");
    expect(taskOf(status, "needs-fatal")).toMatchObject({ state: "held", held_because: "fatal" });
    expect(ran.stdout).toContain("◌ because of fatal: needs-fatal");
  });

  test("a daemon that keeps standard output open does not keep the task", async () => {
    const daemon = taskOf(status, "daemon");
    expect(daemon.state).toBe("succeeded");
    expect((daemon.ended_ms ?? 0) - (daemon.started_ms ?? 0)).toBeLessThan(30_000);
    expect(await outputOf(rig, "daemon")).toBe("parent done\n");
  });

  test("a signal of its own", () => {
    expect(failureOf("signal")).toMatchObject({
      reason: "exit",
      fault: "agent",
      data: { exitCode: 139, signal: "SIGSEGV" },
      headline: "ended with exit code 139 (SIGSEGV)",
    });
  });
});

describe("retries", () => {
  let rig: Rig;
  beforeAll(() => {
    rig = createRig();
  });
  afterAll(() => endRig(rig));

  test("a task that fails twice succeeds at its third attempt; each has its own log", async () => {
    const repository = createRepository(join(rig.root, "repo"), { "README.md": "hello\n" });
    const plan = writePlan(rig, {
      defaults: { ...SMALL, retries: { max: 2, base: 0.2, on: ["exit"] } },
      tasks: [
        {
          id: "flaky",
          run: 'echo "attempt $BULKHEAD_ATTEMPT"; test ! -e seen || exit 77; touch seen; test "$BULKHEAD_ATTEMPT" -eq 3',
        },
        { id: "after", depends_on: ["flaky"], run: "test -e seen" },
        { id: "hopeless", run: "exit 5" },
        { id: "not-retried", retries: { on: ["timeout"] }, run: "exit 6" },
      ],
    });
    const ran = await rig.run(["run", plan], { cwd: repository });
    expect(ran.code, ran.stderr).toBe(1);
    const status = await statusOf(rig);
    expect(taskOf(status, "flaky")).toMatchObject({ state: "succeeded", attempt: 3, patch: { files: 1 } });
    expect(taskOf(status, "after")).toMatchObject({ state: "succeeded", attempt: 1 });
    expect(taskOf(status, "hopeless")).toMatchObject({ state: "failed", attempt: 3 });
    expect(taskOf(status, "not-retried")).toMatchObject({ state: "failed", attempt: 1 });
    expect(ran.stdout).toMatch(/✓ flaky\s.*attempt 3\)/);
    expect(ran.stdout).toMatch(/✗ hopeless: ended with exit code 5 \(.*3 attempts\)/);
    for (const attempt of ["1", "2", "3"]) {
      const { stdout } = await rig.run(["logs", "latest", "flaky", "--attempt", attempt]);
      expect(stdout).toBe(`attempt ${attempt}\n`);
    }
    const scheduled = readEvents(rig).flatMap(({ event, atMs }) =>
      event.type === "retry-scheduled" && event.taskId === "flaky" ? [{ ...event, atMs }] : [],
    );
    expect(scheduled.map(({ attempt, failure }) => [attempt, failure.reason])).toEqual([
      [1, "exit"],
      [2, "exit"],
    ]);
    // base 200 ms, factor 1.5, up to half of it random.
    for (const [index, { delayMs }] of scheduled.entries()) {
      const full = 200 * 1.5 ** index;
      expect(delayMs).toBeGreaterThanOrEqual(full / 2);
      expect(delayMs).toBeLessThanOrEqual(full);
    }
  });
});
