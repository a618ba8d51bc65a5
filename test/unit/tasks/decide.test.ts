import { describe, expect, test } from "vitest";
import type { Fact } from "../../../src/model/event.ts";
import type { Failure } from "../../../src/model/failure.ts";
import type { TaskId } from "../../../src/model/ids.ts";
import type { TaskSpec } from "../../../src/model/task.ts";
import { decide, nextWakeMs } from "../../../src/tasks/decide.ts";
import { createRunState, findTask } from "../../../src/tasks/run-state.ts";
import {
  brief,
  cancel,
  commitOf,
  ENGINE_LOST,
  failed,
  id,
  NO_RETRIES,
  submitted,
  succeeded,
  task,
} from "./run-fixtures.ts";

/** A run at time 0; `tell` gives a fact and answers with the decisions, briefly. Containers start at the moment of the decision. */
function begin(tasks: readonly TaskSpec[], slots = 2) {
  const state = createRunState();
  const tell = (fact: Fact, nowMs = 0) => {
    const decisions = decide(state, fact, nowMs);
    for (const decision of decisions) {
      if (decision.type === "attempt-started") decide(state, started(decision), nowMs);
    }
    return brief(decisions);
  };
  return { state, tell, first: tell(submitted(tasks, slots)) };
}

function started(attempt: { readonly taskId: TaskId; readonly attempt: number }): Fact {
  const { taskId, attempt: number } = attempt;
  return { type: "sandbox-started", taskId, attempt: number, containerId: "c", caps: [], tookMs: 0 };
}

const TICK: Fact = { type: "clock-ticked" };
const RETRY = { ...NO_RETRIES, max: 2 };

describe("order", () => {
  test("an empty plan finishes at once", () => {
    expect(begin([]).first).toEqual(["finished succeeded 0/0/0/0"]);
  });

  test("the lower priority number goes first, then plan order, as far as the slots reach", () => {
    const run = begin(
      [
        task("a"),
        task("b", [], { priority: 1 }),
        task("c", [], { priority: 200 }),
        task("d", [], { priority: 1 }),
      ],
      3,
    );
    expect(run.first).toEqual(["start b#1", "start d#1", "start a#1"]);
    expect(run.tell(succeeded("a"))).toEqual(["succeeded a", "start c#1"]);
  });

  test("a task starts when its last dependency has submitted, on top of the patches of all of them, in plan order", () => {
    const state = createRunState();
    decide(state, submitted([task("a"), task("b"), task("c", ["b", "a"]), task("d", ["c"])]), 0);
    expect(brief(decide(state, succeeded("b"), 0))).toEqual(["succeeded b"]);
    expect(decide(state, succeeded("a"), 0)).toMatchObject([
      { type: "task-succeeded", taskId: "a", attempt: 1, patch: { commit: commitOf("a") } },
      {
        type: "attempt-started",
        taskId: "c",
        attempt: 1,
        parents: [
          { taskId: "a", commit: commitOf("a") },
          { taskId: "b", commit: commitOf("b") },
        ],
      },
    ]);
    expect(decide(state, succeeded("c"), 0)[1]).toMatchObject({ parents: [{ taskId: "c" }] });
    expect(brief(decide(state, succeeded("d"), 0))).toEqual(["succeeded d", "finished succeeded 4/0/0/0"]);
  });

  test("slots can grow, shrink without stopping anything, and be 0", () => {
    const run = begin([task("a"), task("b"), task("c"), task("d")], 0);
    expect(run.first).toEqual([]);
    expect(run.tell({ type: "slots-changed", slots: 2 })).toEqual(["start a#1", "start b#1"]);
    expect(run.tell({ type: "slots-changed", slots: 1 })).toEqual([]);
    expect(run.tell(succeeded("a"))).toEqual(["succeeded a"]);
    expect(run.tell(succeeded("b"))).toEqual(["succeeded b", "start c#1"]);
  });
});

describe("failure", () => {
  test("holds everything downstream at once and lets the rest go on", () => {
    const run = begin([
      task("a"),
      task("b", ["a"]),
      task("c", ["b"]),
      task("x"),
      task("y", ["x"]),
      task("z", ["y", "c"]),
    ]);
    expect(run.tell(failed("a"))).toEqual(["failed a exit", "held b<a", "held c<a", "held z<a"]);
    expect(run.tell(succeeded("x"))).toEqual(["succeeded x", "start y#1"]);
    expect(run.tell(succeeded("y"))).toEqual(["succeeded y", "finished failed 2/1/0/3"]);
  });

  test("an attempt that ended is told twice: the second time decides nothing, even with another outcome", () => {
    const run = begin([task("a"), task("b")]);
    run.tell(succeeded("a"));
    expect(run.tell(succeeded("a"))).toEqual([]);
    expect(run.tell(failed("a"))).toEqual([]);
    run.tell(succeeded("b"));
    expect(run.tell(succeeded("b"))).toEqual([]);
  });
});

describe("retries", () => {
  test("faults of the host are retried with growing delays, then the task fails", () => {
    const run = begin([task("a", [], { retries: RETRY }), task("b", ["a"])]);
    expect(run.tell(failed("a", 1, ENGINE_LOST), 100)).toEqual(["retry a#1 +1000"]);
    expect(nextWakeMs(run.state)).toBe(1100);
    expect(run.tell(TICK, 1099)).toEqual([]);
    expect(run.tell(TICK, 1100)).toEqual(["start a#2"]);
    expect(run.tell(failed("a", 1, ENGINE_LOST), 1200)).toEqual([]);
    expect(run.tell(failed("a", 2, ENGINE_LOST), 1200)).toEqual(["retry a#2 +2000"]);
    expect(run.tell(TICK, 4000)).toEqual(["start a#3"]);
    expect(run.tell(failed("a", 3, ENGINE_LOST), 4100)).toEqual([
      "failed a engine-lost",
      "held b<a",
      "finished failed 0/1/0/1",
    ]);
    expect(nextWakeMs(run.state)).toBeNull();
  });

  test("a retry that is due waits for a slot in its place by priority, without asking for the clock again", () => {
    const run = begin([task("a", [], { priority: 1, retries: RETRY }), task("b"), task("c")], 1);
    expect(run.tell(failed("a", 1, ENGINE_LOST), 0)).toEqual(["retry a#1 +1000", "start b#1"]);
    expect(run.tell(TICK, 1000)).toEqual([]);
    expect(nextWakeMs(run.state)).toBe(1_000_000);
    expect(run.tell(succeeded("b"), 1500)).toEqual(["succeeded b", "start a#2"]);
  });

  test("the time limit of an attempt that has ended wakes nobody", () => {
    const run = begin([task("a", [], { timeoutMs: 500, retries: RETRY }), task("b", [], { timeoutMs: 800 })]);
    run.tell(failed("a", 1, ENGINE_LOST), 100);
    expect(nextWakeMs(run.state)).toBe(800);
  });

  test("the task's own list of reasons adds to the faults of the host", () => {
    const run = begin([
      task("a", [], { retries: { ...RETRY, on: ["exit", "command-not-found"] } }),
      task("b", [], { retries: RETRY }),
    ]);
    expect(run.tell(failed("a"))).toEqual(["retry a#1 +1000"]);
    expect(run.tell(failed("b"))).toEqual(["failed b exit"]);
  });

  const lasting: Failure[] = [
    { reason: "image-missing", fault: "host", image: "x" },
    { reason: "caps-not-enforced", fault: "host", caps: [] },
    { reason: "command-not-found", fault: "task", command: "x", exitCode: 127 },
    { reason: "parents-conflict", fault: "task", parents: [], files: [] },
    { reason: "result-refused", fault: "agent", problems: [] },
    { reason: "runner-bug", fault: "runner", phase: "wait", message: "x" },
  ];
  test.each(lasting)("$reason is retried only where the task lists it", (failure) => {
    expect(begin([task("a", [], { retries: RETRY })]).tell(failed("a", 1, failure))[0]).toBe(
      `failed a ${failure.reason}`,
    );
    const listed = begin([task("a", [], { retries: { ...RETRY, on: [failure.reason] } })]);
    expect(listed.tell(failed("a", 1, failure))).toEqual(["retry a#1 +1000"]);
  });
});

describe("time limits", () => {
  test("count from the start of the container, not from the decision: waiting for the host is not the task's fault", () => {
    const state = createRunState();
    decide(state, submitted([task("a", [], { timeoutMs: 500 })]), 0);
    expect(brief(decide(state, TICK, 60_000))).toEqual([]);
    decide(state, started({ taskId: id("a"), attempt: 1 }), 60_000);
    expect(nextWakeMs(state)).toBe(60_500);
    expect(brief(decide(state, TICK, 60_500))).toEqual(["stop a#1 timeout"]);
  });

  test("a preparation that never ends is stopped all the same; a start told late changes nothing", () => {
    const state = createRunState();
    decide(state, submitted([task("a", [], { timeoutMs: 500, retries: NO_RETRIES })]), 0);
    const wakeMs = nextWakeMs(state) ?? 0;
    expect(wakeMs).toBeGreaterThan(60_000);
    expect(brief(decide(state, TICK, wakeMs))).toEqual(["stop a#1 timeout"]);
    decide(state, started({ taskId: id("a"), attempt: 1 }), wakeMs);
    expect(nextWakeMs(state)).toBeNull();
  });

  test("an attempt is ordered to stop once when its time is up and fails when it has", () => {
    const run = begin([task("a", [], { timeoutMs: 500 }), task("b", [], { timeoutMs: 800 })]);
    expect(nextWakeMs(run.state)).toBe(500);
    expect(run.tell(TICK, 499)).toEqual([]);
    expect(run.tell(TICK, 500)).toEqual(["stop a#1 timeout"]);
    expect(nextWakeMs(run.state)).toBe(800);
    expect(run.tell(TICK, 600)).toEqual([]);
    expect(
      run.tell(failed("a", 1, { reason: "timeout", fault: "agent", limitMs: 500, by: "host" }), 700),
    ).toEqual(["failed a timeout"]);
  });

  test("each attempt has the full time, also after one that ran out of it", () => {
    const run = begin([task("a", [], { timeoutMs: 500, retries: { ...RETRY, on: ["timeout"] } })]);
    run.tell(TICK, 500);
    const end = failed("a", 1, { reason: "timeout", fault: "agent", limitMs: 500, by: "host" });
    expect(run.tell(end, 600)).toEqual(["retry a#1 +1000"]);
    expect(nextWakeMs(run.state)).toBe(1600);
    expect(run.tell(TICK, 1700)).toEqual(["start a#2"]);
    expect(nextWakeMs(run.state)).toBe(2200);
    expect(run.tell(TICK, 2200)).toEqual(["stop a#2 timeout"]);
  });

  test("an attempt that submitted while its stop was on the way has succeeded", () => {
    const run = begin([task("a", [], { timeoutMs: 500 }), task("b", ["a"])]);
    run.tell(TICK, 500);
    expect(run.tell(succeeded("a"), 501)).toEqual(["succeeded a", "start b#1"]);
  });

  test("any fact, not only the tick, lets due time pass", () => {
    const run = begin([task("a", [], { timeoutMs: 500 }), task("b")]);
    expect(run.tell(succeeded("b"), 900)).toEqual(["succeeded b", "stop a#1 timeout"]);
  });
});

describe("cancel", () => {
  test("of a task that has not started: cancelled at once, downstream held", () => {
    const run = begin([task("a"), task("b", ["a"]), task("c", ["b"])]);
    expect(run.tell(cancel("b"))).toEqual(["cancelled b", "held c<b"]);
    expect(run.tell(succeeded("a"))).toEqual(["succeeded a", "finished cancelled 1/0/1/1"]);
  });

  test.each([
    ["cancelled", failed("a", 1, { reason: "cancelled", fault: "task" })],
    ["a failure that would be retried", failed("a", 1, ENGINE_LOST)],
    ["a patch submitted in the same moment", succeeded("a")],
  ])("of a running task: stopped once, cancelled when it has ended with %s", (_how, end) => {
    const run = begin([task("a", [], { retries: RETRY }), task("b", ["a"])]);
    expect(run.tell(cancel("a"))).toEqual(["stop a#1 cancelled"]);
    expect(run.tell(cancel("a"))).toEqual([]);
    expect(run.tell(end)).toEqual(["cancelled a", "held b<a", "finished cancelled 0/0/1/1"]);
  });

  test("of a task between two attempts, and of one whose time is up", () => {
    const run = begin([task("a", [], { retries: RETRY }), task("b", [], { timeoutMs: 10 })]);
    run.tell(failed("a", 1, ENGINE_LOST));
    expect(run.tell(cancel("a"))).toEqual(["cancelled a"]);
    expect(run.tell(TICK, 10)).toEqual(["stop b#1 timeout"]);
    expect(run.tell(cancel("b"), 11)).toEqual([]);
    expect(run.tell(failed("b", 1, ENGINE_LOST), 12)).toEqual(["cancelled b", "finished cancelled 0/0/2/0"]);
  });

  test("of the run: everything that waits is cancelled, everything that runs is stopped, nothing starts", () => {
    const run = begin([task("a"), task("b"), task("c"), task("d", ["a"])]);
    expect(run.tell(cancel(null))).toEqual([
      "stop a#1 cancelled",
      "stop b#1 cancelled",
      "cancelled c",
      "cancelled d",
    ]);
    expect(run.tell(cancel(null))).toEqual([]);
    run.tell(succeeded("a"));
    expect(run.tell(failed("b", 1, { reason: "cancelled", fault: "task" }))).toEqual([
      "cancelled b",
      "finished cancelled 0/0/4/0",
    ]);
  });

  test("of settled tasks and of a finished run changes nothing", () => {
    const run = begin([task("a"), task("b", ["a"])]);
    run.tell(failed("a"));
    for (const name of ["a", "b", null]) expect(run.tell(cancel(name))).toEqual([]);
    expect(run.state.counts).toEqual({ succeeded: 0, failed: 1, cancelled: 0, held: 1 });
  });

  test("an attempt that says it was cancelled, without an order, cancels its task", () => {
    const run = begin([task("a", [], { retries: RETRY })]);
    expect(run.tell(failed("a", 1, { reason: "cancelled", fault: "task" }))[0]).toBe("cancelled a");
  });
});

describe("tasks added while the run is under way", () => {
  const added = (spec: TaskSpec): Fact => ({ type: "task-added", task: spec, by: null });

  test("start when their dependencies have succeeded, and the run waits for them", () => {
    const run = begin([task("a"), task("b")]);
    run.tell(succeeded("a"));
    expect(run.tell(added(task("c", ["a"])))).toEqual(["start c#1"]);
    expect(run.tell(added(task("d", ["a", "b"])))).toEqual([]);
    expect(run.tell(succeeded("b"))).toEqual(["succeeded b", "start d#1"]);
    run.tell(succeeded("d"));
    expect(run.tell(succeeded("c"))).toEqual(["succeeded c", "finished succeeded 4/0/0/0"]);
  });

  test("are held below a failed, a cancelled and a held task, by the one that failed", () => {
    const run = begin([task("a"), task("b", ["a"]), task("x"), task("y", ["x"])]);
    run.tell(failed("a"));
    expect(run.tell(added(task("c", ["a"])))).toEqual(["held c<a"]);
    expect(run.tell(added(task("d", ["x", "b"])))).toEqual(["held d<a"]);
    expect(run.tell(cancel("y"))).toEqual(["cancelled y"]);
    expect(run.tell(added(task("e", ["y", "x"])))).toEqual(["held e<y"]);
  });

  test("are cancelled in a run that is being cancelled", () => {
    const run = begin([task("a")]);
    run.tell(cancel(null));
    expect(run.tell(added(task("b")))).toEqual(["cancelled b"]);
  });
});

describe("facts that cannot be are bugs of the caller and change nothing", () => {
  test.each<[string, Fact]>([
    ["a second submission", submitted([])],
    ["an added task with an unknown dependency", { type: "task-added", task: task("n", ["zz"]), by: null }],
    ["an added task with the name of another", { type: "task-added", task: task("a"), by: null }],
    ["the end of an attempt that never started", succeeded("a", 2)],
    ["the end of an attempt of an unknown task", succeeded("zz")],
    ["the cancellation of an unknown task", cancel("zz")],
    ["half a slot", { type: "slots-changed", slots: 0.5 }],
    ["less than no slot", { type: "slots-changed", slots: -1 }],
  ])("%s", (_name, fact) => {
    const run = begin([task("a"), task("b", ["a"])]);
    expect(() => run.tell(fact)).toThrow(expect.objectContaining({ name: "RunnerError", code: "internal" }));
    expect(run.tell(succeeded("a"))).toEqual(["succeeded a", "start b#1"]);
    expect(run.tell(succeeded("b"))).toEqual(["succeeded b", "finished succeeded 2/0/0/0"]);
  });

  test("a cyclic plan, and a task for a finished run", () => {
    const state = createRunState();
    expect(() => decide(state, submitted([task("a", ["b"]), task("b", ["a"])]), 0)).toThrow(
      /do not form a DAG/,
    );
    decide(state, submitted([]), 0);
    expect(() => decide(state, { type: "task-added", task: task("n"), by: null }, 0)).toThrow(
      /not under way/,
    );
    expect(findTask(state, id("n"))).toBeUndefined();
  });
});
