/** bulkhead as a library: the built package, used as a program would. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as Library from "../../src/index.ts";
import { createRepository, createRig, type Rig } from "../support/bulkhead-cli.ts";
import { endRig, SMALL, statusOf } from "../support/e2e-rig.ts";

const { runPlan, RunnerError } = (await import(
  new URL("../../dist/index.js", import.meta.url).href
)) as typeof Library;

let rig: Rig;
let repository: string;

beforeAll(() => {
  rig = createRig();
  repository = createRepository(join(rig.root, "repo"), { "a.txt": "a\n" });
});
afterAll(() => endRig(rig));

const start = (plan: Library.RunPlanOptions["plan"], more: Partial<Library.RunPlanOptions> = {}) =>
  runPlan({ plan, repository, stateDir: rig.stateDir, cacheDir: rig.cacheDir, ...more });

async function collect(run: Library.PlanRun): Promise<Library.LoggedEvent[]> {
  const events: Library.LoggedEvent[] = [];
  for await (const event of run.events()) events.push(event);
  return events;
}

/** The RunnerError that a promise rejects with. */
async function refusal(promise: Promise<unknown>): Promise<InstanceType<typeof RunnerError>> {
  const error: unknown = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error instanceof RunnerError) return error;
  throw new Error(`not refused with a RunnerError: ${String(error)}`);
}

test("a plan given as an object: every event in order, patches in them, the outcome at the end", async () => {
  const run = await start({
    tasks: [
      { id: "first", run: "echo grün > ü.txt", ...SMALL },
      { id: "second", run: "cat ü.txt && exit 4", depends_on: ["first"], ...SMALL },
      { id: "third", run: "true", depends_on: ["second"], ...SMALL },
    ],
  });
  expect(run.runId).toMatch(/^\d{8}-\d{6}-[0-9a-f]{6}$/);
  expect(run.warnings).toEqual([]);
  const events = await collect(run);
  // A failed task is an outcome, not a rejection.
  expect(await run.result).toEqual({ status: "failed", succeeded: 1, failed: 1, cancelled: 0, held: 1 });
  expect(events.every(({ runId }) => runId === run.runId)).toBe(true);
  const sequence = events.map(({ seq }) => seq);
  expect(sequence).toEqual(sequence.toSorted((a, b) => a - b));
  expect(new Set(sequence).size).toBe(sequence.length);
  const about = events.map(({ event }) => ("taskId" in event ? `${event.type} ${event.taskId}` : event.type));
  expect(about.filter((text) => !text.startsWith("warning-raised"))).toEqual([
    "run-submitted",
    "attempt-started first",
    "snapshot-prepared first",
    "sandbox-started first",
    "attempt-ended first",
    "task-succeeded first",
    "attempt-started second",
    "snapshot-prepared second",
    "sandbox-started second",
    "attempt-ended second",
    "task-failed second",
    "task-held third",
    "run-finished",
  ]);
  const succeeded = events.find(({ event }) => event.type === "task-succeeded")?.event;
  if (succeeded?.type !== "task-succeeded") throw new Error("no task-succeeded");
  expect(succeeded.patch.files).toMatchObject([{ path: "ü.txt", kind: "added", insertions: 1 }]);
  const failed = events.find(({ event }) => event.type === "task-failed")?.event;
  expect(failed).toMatchObject({ failure: { reason: "exit", fault: "agent", exitCode: 4 } });
});

test("result alone settles without reading the events; the command line sees the same run", async () => {
  const run = await start({ tasks: [{ id: "only", run: "true", ...SMALL }] });
  expect(await run.result).toMatchObject({ status: "succeeded", succeeded: 1 });
  expect(await statusOf(rig, run.runId)).toMatchObject({ run_id: run.runId, state: "succeeded" });
});

test("cancel of one task and of all", async () => {
  const tasks = ["one", "two"].map((id) => ({ id, run: "sleep 50", ...SMALL }));
  const run = await start({ tasks: [...tasks, { id: "after", run: "true", depends_on: ["one"], ...SMALL }] });
  const events: string[] = [];
  for await (const { event } of run.events()) {
    if (!("taskId" in event)) continue;
    events.push(`${event.type} ${event.taskId}`);
    if (event.type === "sandbox-started" && event.taskId === "one") await run.cancel("one");
    if (event.type === "task-held") await run.cancel();
  }
  expect(events).toContain("task-cancelled one");
  expect(events).toContain("task-held after");
  expect(events).toContain("task-cancelled two");
  expect(await run.result).toEqual({ status: "cancelled", succeeded: 0, failed: 0, cancelled: 2, held: 1 });
  const late = await refusal(run.cancel());
  expect(late.code).toMatch(/^(run-not-found|supervisor-unreachable)$/);
});

test("a detached run goes on", async () => {
  const run = await start({ tasks: [{ id: "only", run: "sleep 1; echo x > x", ...SMALL }] });
  run.detach();
  for (;;) {
    const status = await statusOf(rig, run.runId);
    if (status.state !== "running" && status.state !== "waiting") {
      expect(status.tasks[0]).toMatchObject({ state: "succeeded", patch: { files: 1 } });
      return;
    }
  }
});

test("files, folders and a stream as plans", async () => {
  const path = join(rig.root, "plan.yaml");
  writeFileSync(path, "tasks:\n  - {id: from-file, run: 'true', depends_on: [from-stream]}\n");
  const stdin = Readable.from(["tasks: [{id: from-stream, ", "run: 'true'}]\n"]);
  const run = await start([path, "-"], { stdin });
  const [first] = await collect(run);
  if (first?.event.type !== "run-submitted") throw new Error("the first event is not run-submitted");
  expect(first.event.tasks.map(({ id }) => id).toSorted()).toEqual(["from-file", "from-stream"]);
  expect(first.event.settings.sources).toEqual([path, "<stdin>"]);
  expect(await run.result).toMatchObject({ status: "succeeded", succeeded: 2 });
});

test("a wrong plan is refused with every problem as data, and nothing is started", async () => {
  const own = createRig();
  try {
    const error = await refusal(
      start(
        {
          tasks: [
            { id: "a", run: "true", depends_on: ["b"] },
            { id: "b", run: "true", depends_on: ["a"] },
            { id: "c", runs: "true" },
          ],
        },
        { stateDir: own.stateDir, cacheDir: own.cacheDir },
      ),
    );
    expect(error.code).toBe("plan-invalid");
    expect(error.message).toMatch(/^the plan has 3 problems:\n/);
    expect(error.data).toMatchObject({
      problems: expect.arrayContaining([
        expect.objectContaining({ task: "a", field: "depends_on", message: "cycle: a -> b -> a" }),
        expect.objectContaining({ task: "c", field: "runs", hint: "did you mean run?" }),
      ]),
    });
    expect(existsSync(own.stateDir)).toBe(false);
  } finally {
    await endRig(own);
  }
});

test("an engine that is not there, a place that is no repository", async () => {
  const tasks = [{ id: "a", run: "true" }];
  const noEngine = await refusal(start({ tasks }, { engine: "unix:///nonexistent.sock" }));
  expect(noEngine.code).toBe("engine-unreachable");
  expect(noEngine.hint).toBe("start it, or name another with --engine");
  expect((await refusal(start({ tasks }, { repository: "/proc" }))).code).toBe("not-a-repository");
});
