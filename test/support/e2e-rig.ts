/** What end-to-end tests share: a rig whose end proves that nothing is left, and eyes on what a run did. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { LoggedEvent, RunEventType } from "../../src/model/event.ts";
import type { RunViewJson, TaskViewJson } from "../../src/observe/run-view-json.ts";
import { openEventStore } from "../../src/store/sqlite/sqlite-event-store.ts";
import { databasePath, supervisorSocketPath } from "../../src/util/state-layout.ts";
import type { CliResult, Rig } from "./bulkhead-cli.ts";
import { findLeftovers, NOTHING_LEFT } from "./leftovers.ts";
import { docker } from "./shell-container.ts";

/** Asks until `look` gives something; fails with `what` when the time is over. The answer of a process is all there is to wait for. */
export async function waitFor<T>(
  what: string,
  look: () => T | null | undefined | false | Promise<T | null | undefined | false>,
  limitMs = 30_000,
): Promise<T> {
  const end = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`waited ${limitMs} ms for ${what}`);
    await delay(40);
  }
}

/**
 * Waits for the supervisor to leave by itself, checks that nothing is left on the host and that it complained of nothing but what is
 * `expected`, removes the rig.
 */
export async function endRig(rig: Rig, expected = /^$/): Promise<void> {
  try {
    await waitFor("the supervisor to end", () => supervisorPids(rig.stateDir).length === 0, 20_000);
    expect(complaints(rig.stateDir).filter((line) => !expected.test(line))).toEqual([]);
    expect(await findLeftovers(rig.stateDir)).toEqual(NOTHING_LEFT);
    const doors = join(rig.stateDir, "d");
    expect(existsSync(doors) ? readdirSync(doors) : []).toEqual([]);
    expect(await isAnswering(supervisorSocketPath(rig.stateDir))).toBe(false);
  } finally {
    await sweepUp(rig.stateDir);
    rig.dispose();
  }
}

/** After a test that failed: ends what is still there, so that it does not disturb the next one. Finds nothing after one that passed. */
async function sweepUp(stateDir: string): Promise<void> {
  for (const pid of supervisorPids(stateDir)) process.kill(pid, "SIGKILL");
  const left = await findLeftovers(stateDir);
  for (const name of left.containers) await docker.getContainer(name.slice(1)).remove({ force: true });
  for (const name of left.volumes) await docker.getVolume(name).remove();
}

/** Lines of the supervisor's log that are no plain news: warnings, errors, and what is no log line at all. */
function complaints(stateDir: string): string[] {
  const path = join(stateDir, "supervisor.log");
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.filter((line) => line !== "" && !/^\{"level":[123]0,/.test(line));
}

/** Processes that own this state directory, by the kernel's word: command line and environment. */
export function supervisorPids(stateDir: string): number[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      const env = readFileSync(`/proc/${name}/environ`, "utf8").split("\0");
      return words.includes("supervise") && env.includes(`BULKHEAD_STATE_DIR=${stateDir}`)
        ? [Number(name)]
        : [];
    } catch {
      return []; // It has ended since.
    }
  });
}

function isAnswering(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** `status --json`, as a user's script would read it. */
export async function statusOf(rig: Rig, run = "latest"): Promise<RunViewJson> {
  const { code, stdout, stderr } = await rig.run(["status", run, "--json"]);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as RunViewJson;
}

export function taskOf(status: RunViewJson, id: string): TaskViewJson {
  const task = status.tasks.find((one) => one.id === id);
  if (task === undefined) throw new Error(`no task ${id} in ${status.tasks.map((one) => one.id).join(", ")}`);
  return task;
}

/** Tasks by state, for one comparison that shows all of them. */
export function statesOf(status: RunViewJson): Record<string, string> {
  return Object.fromEntries(status.tasks.map(({ id, state }) => [id, state]));
}

/** The event log of the newest run (or of `run`), read while or after it goes on. */
export function readEvents(rig: Rig, run?: string): LoggedEvent[] {
  const store = openEventStore(databasePath(rig.stateDir), { readOnly: true, readOnlyIfMissing: "empty" });
  try {
    const runId = store.runs().find((id) => run === undefined || id === run);
    return runId === undefined ? [] : [...store.read(runId)];
  } finally {
    store.close();
  }
}

/** Whether the newest run's log holds such an event of the task. */
export function hasEvent(rig: Rig, type: RunEventType, taskId: string): boolean {
  return readEvents(rig).some(
    ({ event }) => event.type === type && "taskId" in event && event.taskId === taskId,
  );
}

/** Where in the log an event of a task stands, counted from the log's start. */
export function placeOf(events: readonly LoggedEvent[], type: RunEventType, taskId: string): number {
  const found = events.find(
    ({ event }) => event.type === type && "taskId" in event && event.taskId === taskId,
  );
  if (found === undefined) throw new Error(`no ${type} of ${taskId} in the log`);
  return found.seq;
}

/** What a task printed, both streams. */
export async function outputOf(rig: Rig, task: string, run = "latest"): Promise<string> {
  const { code, stdout, stderr } = await rig.run(["logs", run, task]);
  expect(code, stderr).toBe(0);
  return stdout;
}

/** Expects an exit code and shows what was printed where it is another. */
export function expectCode(result: CliResult, code: number): CliResult {
  expect(result.code, `${result.stdout}\n${result.stderr}`).toBe(code);
  return result;
}

/** Writes a plan file beside the repository and returns its path. */
export function writePlan(rig: Rig, plan: object, name = "plan.json"): string {
  const dir = join(rig.root, "plans");
  mkdirSync(dir, { recursive: true });
  const path = join(dir, name);
  writeFileSync(path, JSON.stringify(plan, null, 2));
  return path;
}

/** Small caps: tests run many at once on small machines. */
export const SMALL = { timeout: "60s", caps: { memory: "64m", pids: 64 } };
