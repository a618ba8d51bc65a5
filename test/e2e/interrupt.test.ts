/**
 * Who may stop a run, and who cannot: Ctrl+C on a real terminal, signals without one, other processes, a client that dies (row A8).
 * Tasks sleep inside their containers; the tests wait for what the log or the screen says.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { CLI, createRepository, createRig, type Rig } from "../support/bulkhead-cli.ts";
import {
  endRig,
  expectCode,
  hasEvent,
  readEvents,
  SMALL,
  statesOf,
  statusOf,
  supervisorPids,
  taskOf,
  waitFor,
  writePlan,
} from "../support/e2e-rig.ts";
import { replayScreen } from "../support/terminal-screen.ts";
import { CTRL_C, openTerminal } from "../support/terminal-session.ts";

const QUESTION = "stop the run, leave it running, or continue watching? [s/l/c]";

let rig: Rig;
let repository: string;

beforeAll(() => {
  rig = createRig();
  repository = createRepository(join(rig.root, "repo"), { "a.txt": "a\n" });
});
afterAll(() => endRig(rig));

/** Without what readline writes besides text: it moves to a column, first or after the question, and erases below. */
function readlineFree(text: string): string {
  const esc = "\u001b";
  return text
    .replaceAll(`${esc}[1G`, "\r")
    .replaceAll(`${esc}[0J`, `${esc}[J`)
    .replaceAll(new RegExp(`${esc}\\[\\d+G`, "g"), "");
}

/** A task of some seconds and one that needs it. */
function plan(seconds: number): string {
  return writePlan(
    rig,
    {
      defaults: SMALL,
      tasks: [
        { id: "long", run: `sleep ${seconds}; echo done > done.txt` },
        { id: "next", depends_on: ["long"], run: "cat done.txt" },
      ],
    },
    `sleep-${seconds}.json`,
  );
}

function newestRun(): string | null {
  return readEvents(rig)[0]?.runId ?? null;
}

/** The newest run once its first task runs in a container; `before` is the newest one until then. */
function runningRun(before: string | null): Promise<string> {
  return waitFor("the task to run", () => {
    const run = newestRun();
    return run !== before && hasEvent(rig, "sandbox-started", "long") ? run : null;
  });
}

async function settled(run: string): Promise<Record<string, string>> {
  const status = await waitFor("the run to end", async () => {
    const now = await statusOf(rig, run);
    return now.state === "running" || now.state === "waiting" ? null : now;
  });
  return statesOf(status);
}

describe("Ctrl+C on a terminal", () => {
  test("asks once; `c` goes on watching to the report", async () => {
    const before = newestRun();
    const terminal = openTerminal(rig, ["run", plan(5)], repository);
    const run = await runningRun(before);
    terminal.type(CTRL_C);
    await terminal.sees(QUESTION);
    // The view's clock ticks each second; that nothing is painted over the question shows only after it would have been.
    await delay(1300);
    const screen = replayScreen(readlineFree(terminal.text), { columns: 100, rows: 30 });
    expect(screen.lines.at(-1)).toBe(QUESTION);
    terminal.type("c\r");
    expect(await terminal.ended).toBe(0);
    expect(terminal.text.split(QUESTION)).toHaveLength(2);
    expect(terminal.text).toContain("2 succeeded");
    expect(await settled(run)).toEqual({ long: "succeeded", next: "succeeded" });
  });

  test("`l` leaves the run to go on by itself and says how to see and end it", async () => {
    const before = newestRun();
    const terminal = openTerminal(rig, ["run", plan(5)], repository);
    const run = await runningRun(before);
    terminal.type(CTRL_C);
    await terminal.sees(QUESTION);
    terminal.type("l\r");
    expect(await terminal.ended).toBe(0);
    expect(terminal.text).toContain(
      `left run ${run} going; see it with \`bulkhead status\`, end it with \`bulkhead cancel ${run}\``,
    );
    expect((await statusOf(rig, run)).state).toBe("running");
    expect(await settled(run)).toEqual({ long: "succeeded", next: "succeeded" });
  });

  test("an answer that is none is asked again; `s` stops with 130", async () => {
    const before = newestRun();
    const terminal = openTerminal(rig, ["run", plan(50)], repository);
    const run = await runningRun(before);
    terminal.type(CTRL_C);
    await terminal.sees(QUESTION);
    terminal.type("x\r");
    await terminal.sees(QUESTION, 2);
    terminal.type("s\r");
    expect(await terminal.ended).toBe(130);
    expect(terminal.text).toContain("stopping the run …");
    expect(await settled(run)).toEqual({ long: "cancelled", next: "cancelled" });
  });

  test("a second Ctrl+C at the question stops", async () => {
    const before = newestRun();
    const terminal = openTerminal(rig, ["run", plan(50)], repository);
    const run = await runningRun(before);
    terminal.type(CTRL_C);
    await terminal.sees(QUESTION);
    terminal.type(CTRL_C);
    expect(await terminal.ended).toBe(130);
    expect(await settled(run)).toEqual({ long: "cancelled", next: "cancelled" });
  });

  test("a terminal that is closed takes no run with it", async () => {
    const before = newestRun();
    const terminal = openTerminal(rig, ["run", plan(4)], repository);
    const run = await runningRun(before);
    terminal.hangUp();
    await terminal.ended;
    expect(await settled(run)).toEqual({ long: "succeeded", next: "succeeded" });
  });
});

describe("without a terminal", () => {
  let client: ChildProcess | null = null;
  afterEach(() => {
    client?.kill("SIGKILL");
    client = null;
  });

  function start(args: readonly string[]): { child: ChildProcess; ended: Promise<number | null> } {
    const child = spawn(process.execPath, [CLI, ...args], { cwd: repository, env: rig.env, stdio: "ignore" });
    client = child;
    return { child, ended: new Promise((resolve) => child.once("close", (code) => resolve(code))) };
  }

  test.each(["SIGINT", "SIGTERM"] as const)("%s stops the run with 130", async (signal) => {
    const before = newestRun();
    const { child, ended } = start(["run", plan(50)]);
    const run = await runningRun(before);
    child.kill(signal);
    expect(await ended).toBe(130);
    // The client ends when the run has settled: nothing is left to wait for.
    expect(statesOf(await statusOf(rig, run))).toEqual({ long: "cancelled", next: "cancelled" });
  });

  test("kill -9 of the client leaves the run going", async () => {
    const before = newestRun();
    const { child, ended } = start(["run", plan(4)]);
    const run = await runningRun(before);
    child.kill("SIGKILL");
    expect(await ended).toBeNull();
    expect(await settled(run)).toEqual({ long: "succeeded", next: "succeeded" });
  });
});

describe("from other processes", () => {
  test("run -d prints the id and returns; `cancel RUN TASK` ends that task and holds what needs it", async () => {
    const path = writePlan(rig, {
      defaults: SMALL,
      tasks: [
        { id: "long", run: "sleep 50" },
        { id: "needs-long", depends_on: ["long"], run: "true" },
        { id: "apart", run: "sleep 3; echo apart > apart.txt" },
      ],
    });
    const before = newestRun();
    const { stdout } = expectCode(await rig.run(["run", "-d", path], { cwd: repository }), 0);
    expect(stdout).toMatch(/^\d{8}-\d{6}-[0-9a-f]{6}\n$/);
    const run = stdout.trim();
    expect(await statusOf(rig, run)).toMatchObject({ state: "running", driven: true });
    expect(await runningRun(before)).toBe(run);
    const cancel = expectCode(await rig.run(["cancel", run.slice(-6), "long"]), 0);
    expect(cancel.stdout).toBe(`cancelling long of run ${run}\n`);
    expect(await settled(run)).toEqual({ long: "cancelled", "needs-long": "held", apart: "succeeded" });
    const status = await statusOf(rig, run);
    expect(taskOf(status, "needs-long").held_because).toBe("long");
    // A cancelled task gets no second attempt.
    expect(taskOf(status, "long").attempt).toBe(1);
  });

  test("two runs at once share one supervisor", async () => {
    await waitFor("the supervisor before to end", () => supervisorPids(rig.stateDir).length === 0);
    const log = join(rig.stateDir, "supervisor.log");
    const startsBefore = readFileSync(log, "utf8").split('"supervisor started"').length;
    const both = ["one", "two"].map((id) =>
      rig.run(
        [
          "run",
          writePlan(
            rig,
            { defaults: SMALL, tasks: [{ id, run: `echo ${id} > ${id}; sleep 1` }] },
            `${id}.json`,
          ),
          "--json",
        ],
        { cwd: repository },
      ),
    );
    const results = (await Promise.all(both)).map((result) => JSON.parse(expectCode(result, 0).stdout));
    expect(results.map(({ state }) => state)).toEqual(["succeeded", "succeeded"]);
    expect(results[0].run_id).not.toBe(results[1].run_id);
    expect(readFileSync(log, "utf8").split('"supervisor started"').length).toBe(startsBefore + 1);
    const list = expectCode(await rig.run(["status", "--all", "--json"]), 0);
    const listed = JSON.parse(list.stdout).runs.map(({ run_id: id }: { run_id: string }) => id);
    expect(listed).toEqual(expect.arrayContaining(results.map(({ run_id: id }) => id)));
  });
});
