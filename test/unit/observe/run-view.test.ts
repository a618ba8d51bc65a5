import { describe, expect, test } from "vitest";
import { computeSavings } from "../../../src/observe/run-savings.ts";
import { applyEvent, createRunView, TASK_STATES } from "../../../src/observe/run-view.ts";
import { toJson } from "../../../src/observe/run-view-json.ts";
import {
  ended,
  fold,
  id,
  log,
  mixedRun,
  OOM,
  RUN,
  START_MS,
  samplePatch,
  sampleTask,
  started,
  submitted,
  succeeded,
} from "../../support/sample-run.ts";

describe("applyEvent", () => {
  test("counts always agree with the states of the tasks", () => {
    const view = createRunView();
    for (const event of mixedRun()) {
      applyEvent(view, event);
      for (const state of TASK_STATES) {
        const found = [...view.tasks.values()].filter((task) => task.state === state).length;
        expect(view.counts[state]).toBe(found);
      }
    }
    expect(view.counts).toMatchObject({ succeeded: 2, failed: 1, held: 2, waiting: 0 });
    expect(view.endedMs).toBe(START_MS + 72_500);
  });

  test("a retried task keeps its first start and shows why it is retried until it succeeds", () => {
    const events = log(
      [0, submitted([sampleTask("a")])],
      [10, started("a")],
      [20, ended("a", 1, OOM)],
      [
        20,
        {
          type: "retry-scheduled",
          taskId: id("a"),
          attempt: 1,
          delayMs: 100,
          dueMs: START_MS + 120,
          failure: OOM,
        },
      ],
      [120, started("a", 2)],
      [200, ended("a", 2, samplePatch("a", [["x", 1, 2]]))],
      [200, succeeded("a", samplePatch("a", [["x", 1, 2]]), 2)],
    );
    const task = (untilMs: number) => fold(events, untilMs).tasks.get(id("a"));
    expect(task(20)).toMatchObject({ state: "retrying", retryDueMs: START_MS + 120, failure: OOM });
    expect(task(120)).toMatchObject({
      state: "running",
      attempt: 2,
      startedMs: START_MS + 10,
      retryDueMs: null,
    });
    expect(task(200)).toMatchObject({
      state: "succeeded",
      failure: null,
      endedMs: START_MS + 200,
      patchSummary: { files: 1, insertions: 1, deletions: 2, binaries: 0 },
    });
  });

  test("a new attempt does not show the container, caps and words of the one before", () => {
    const events = log(
      [0, submitted([sampleTask("a")])],
      [1, started("a")],
      [2, { type: "sandbox-started", taskId: id("a"), attempt: 1, containerId: "c1", caps: [], tookMs: 1 }],
      [
        3,
        {
          type: "status-reported",
          taskId: id("a"),
          attempt: 1,
          state: "working",
          message: "old",
          percent: 90,
        },
      ],
      [4, started("a", 2)],
    );
    expect(fold(events, 3).tasks.get(id("a"))).toMatchObject({ containerId: "c1", status: { percent: 90 } });
    expect(fold(events).tasks.get(id("a"))).toMatchObject({ containerId: null, status: null });
  });

  test("tasks can be added while the run goes on, and unknown tasks are passed by", () => {
    const view = fold(
      log(
        [0, submitted([sampleTask("a")])],
        [1, { type: "task-added", task: sampleTask("b"), by: id("a") }],
        [2, started("nobody")],
      ),
    );
    expect([...view.tasks.keys()]).toEqual(["a", "b"]);
    expect(view.counts).toMatchObject({ waiting: 2, running: 0 });
  });

  test("what was applied and undone is known by its target", () => {
    const applied = (target: string) =>
      ({
        type: "patches-applied",
        taskIds: [id("a")],
        target,
        headBefore: null,
        tree: "t",
        undo: "u",
      }) as const;
    const view = fold(
      log(
        [0, submitted([sampleTask("a")])],
        [1, applied("worktree")],
        [2, applied("refs/heads/x")],
        [3, { type: "apply-undone", target: "worktree" }],
      ),
    );
    expect(view.applied.map(({ target, undone }) => [target, undone])).toEqual([
      ["worktree", true],
      ["refs/heads/x", false],
    ]);
  });

  test("costs the same for each event however many tasks there are: 20,000 tasks fold in well under two seconds", () => {
    const tasks = Array.from({ length: 20_000 }, (_, i) => sampleTask(`t${i}`));
    const patch = samplePatch("t0", []);
    const events = [
      [0, submitted(tasks)] as const,
      ...tasks.flatMap((task) => [
        [1, started(task.id)] as const,
        [2, ended(task.id, 1, patch)] as const,
        [2, succeeded(task.id, patch)] as const,
      ]),
    ];
    const logged = log(...events);
    const start = performance.now();
    expect(fold(logged).counts.succeeded).toBe(20_000);
    expect(performance.now() - start).toBeLessThan(2000);
  });
});

describe("computeSavings", () => {
  test("says what was held because of what, and only figures that can be stood by", () => {
    expect(computeSavings(fold(mixedRun()))).toEqual({
      heldTasks: 2,
      attemptsNotStarted: 2,
      attemptsAtMost: 6,
      // Of 4000, 4900, 2000 and 72300 ms.
      medianAttemptMs: 4450,
      causes: [{ taskId: "memory", held: ["docs", "release"] }],
    });
    expect(computeSavings(fold([]))).toMatchObject({ heldTasks: 0, medianAttemptMs: null });
  });
});

describe("toJson", () => {
  test("has a stable shape, plain JSON, with the failure in words", () => {
    const json = toJson(fold(mixedRun()));
    expect(JSON.parse(JSON.stringify(json))).toEqual(json);
    expect(json).toMatchObject({
      version: 1,
      run_id: RUN,
      state: "failed",
      repository: "/home/ada/shop",
      saved: { held_tasks: 2, attempts_not_started: 2 },
    });
    expect(Object.keys(json)).toEqual([
      "version",
      "run_id",
      "state",
      "repository",
      "base_commit",
      "head_commit",
      "base_ref",
      "slots",
      "started_ms",
      "ended_ms",
      "counts",
      "attempts_started",
      "saved",
      "applied",
      "warnings",
      "tasks",
    ]);
    const memory = json.tasks.find((task) => task.id === "memory");
    expect(memory?.failure).toMatchObject({
      reason: "oom",
      fault: "agent",
      headline: expect.stringContaining("512 MiB"),
    });
    expect(memory?.holds).toEqual(["docs", "release"]);
    expect(json.tasks.find((task) => task.id === "docs")).toMatchObject({
      state: "held",
      held_because: "memory",
      patch: null,
    });
    expect(json.tasks.find((task) => task.id === "auth")?.patch).toMatchObject({
      files: 2,
      binaries: 1,
      empty: false,
    });
  });
});
