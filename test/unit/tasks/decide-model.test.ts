/** Random plans with random outcomes, held against rules that are stated here once more, without the scheduler's code. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Decision, Fact } from "../../../src/model/event.ts";
import type { TaskSpec } from "../../../src/model/task.ts";
import { decide, nextWakeMs } from "../../../src/tasks/decide.ts";
import { evolve } from "../../../src/tasks/evolve.ts";
import { countSteps, createRunState } from "../../../src/tasks/run-state.ts";
import { cancel, ENGINE_LOST, failed, id, NO_RETRIES, submitted, succeeded, task } from "./run-fixtures.ts";

interface Step {
  readonly kind: "succeed" | "fail" | "lose" | "repeat" | "tick" | "cancel" | "cancel-all" | "slots" | "add";
  readonly pick: number;
}

interface Batch {
  readonly fact: Fact;
  readonly atMs: number;
  readonly decisions: readonly Decision[];
}

const planArbitrary = fc
  .array(
    fc.record({
      edges: fc.array(fc.nat(100), { maxLength: 4 }),
      priority: fc.nat(3),
      timeoutMs: fc.integer({ min: 50, max: 5000 }),
      retries: fc.nat(2),
    }),
    { maxLength: 20 },
  )
  .map((rows) =>
    rows.map(({ edges, priority, timeoutMs, retries }, i) =>
      task(`t${i}`, i === 0 ? [] : edges.map((edge) => `t${edge % i}`), {
        priority,
        timeoutMs,
        retries: { ...NO_RETRIES, baseMs: 100, jitter: 0.5, max: retries },
      }),
    ),
  );

const stepsArbitrary = fc.array(
  fc.record({
    kind: fc.oneof(
      { weight: 12, arbitrary: fc.constant<Step["kind"]>("succeed") },
      {
        weight: 8,
        arbitrary: fc.constantFrom<Step["kind"]>("fail", "lose", "tick", "repeat", "slots", "add"),
      },
      { weight: 1, arbitrary: fc.constantFrom<Step["kind"]>("cancel", "cancel-all") },
    ),
    pick: fc.nat(1000),
  }),
  { maxLength: 60 },
);

/** Plays the steps, then lets everything that is left succeed, with one slot at least. */
function play(plan: readonly TaskSpec[], slots: number, steps: readonly Step[]) {
  const state = createRunState();
  const specs = [...plan];
  const batches: Batch[] = [];
  const running = new Map<string, number>();
  const ends: Fact[] = [];
  let nowMs = 1000;
  let isFinished = false;

  const tell = (fact: Fact) => {
    const decisions = decide(state, deepFreeze(fact), nowMs);
    if (fact.type === "attempt-ended" && running.get(fact.taskId) === fact.attempt)
      running.delete(fact.taskId);
    for (const one of decisions) {
      if (one.type === "attempt-started") running.set(one.taskId, one.attempt);
      if (one.type === "run-finished") isFinished = true;
    }
    batches.push({ fact, atMs: nowMs, decisions });
  };
  const end = (pick: number, make: (name: string, attempt: number) => Fact) => {
    const attempts = [...running];
    const chosen = attempts[pick % attempts.length];
    if (!chosen) return;
    const fact = make(...chosen);
    ends.push(fact);
    tell(fact);
  };
  const actions: Record<Step["kind"], (pick: number) => void> = {
    succeed: (pick) => end(pick, succeeded),
    fail: (pick) => end(pick, failed),
    lose: (pick) => end(pick, (name, attempt) => failed(name, attempt, ENGINE_LOST)),
    repeat: (pick) => {
      const fact = ends[pick % ends.length];
      if (fact) tell(fact);
    },
    tick: () => tell({ type: "clock-ticked" }),
    cancel: (pick) => {
      const spec = specs[pick % specs.length];
      if (spec) tell(cancel(spec.id));
    },
    "cancel-all": () => tell(cancel(null)),
    slots: (pick) => tell({ type: "slots-changed", slots: pick % 5 }),
    add: (pick) => {
      if (isFinished) return;
      const spec = task(`t${specs.length}`, specs.length === 0 ? [] : [`t${pick % specs.length}`], {
        priority: pick % 4,
      });
      specs.push(spec);
      tell({ type: "task-added", task: spec, by: null });
    },
  };

  tell(submitted(plan, slots));
  for (const { kind, pick } of steps) {
    nowMs += pick % 97;
    actions[kind](pick);
  }
  tell({ type: "slots-changed", slots: 3 });
  for (let guard = 0; !isFinished && guard < 10_000; guard += 1) {
    if (running.size > 0) end(0, succeeded);
    else {
      nowMs = Math.max(nowMs, nextWakeMs(state) ?? nowMs);
      tell({ type: "clock-ticked" });
    }
  }
  return { state, specs, batches };
}

const runArbitrary = fc.tuple(planArbitrary, fc.integer({ min: 0, max: 4 }), stepsArbitrary);

describe("every run", () => {
  test("starts nothing before its dependencies, keeps to the slots, settles each task once and finishes last", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(runArbitrary, ([plan, slots, steps]) => {
        const { specs, batches } = play(plan, slots, steps);
        for (const type of checkRules(specs, batches)) seen.add(type);
      }),
      { numRuns: 400 },
    );
    expect([...seen].toSorted((a, b) => a.localeCompare(b))).toEqual([
      "attempt-started",
      "attempt-stop-ordered",
      "retry-scheduled",
      "run-finished",
      "task-cancelled",
      "task-failed",
      "task-held",
      "task-succeeded",
    ]);
  });

  test("goes on the same from a log cut anywhere, also between a fact and its decisions", () => {
    fc.assert(
      fc.property(runArbitrary, fc.nat(), ([plan, slots, steps], cutSeed) => {
        const { batches } = play(plan, slots, steps);
        const log = batches.flatMap((batch, at) =>
          [batch.fact, ...batch.decisions].map((event) => ({ event, at })),
        );
        const cut = 1 + (cutSeed % log.length);
        const state = createRunState();
        for (const { event, at } of log.slice(0, cut)) evolve(state, event, batches[at]?.atMs ?? 0);

        const lastAt = log[cut - 1]?.at ?? 0;
        const owed = log.slice(cut).flatMap(({ event, at }) => (at === lastAt ? [event] : []));
        expect(decide(state, { type: "clock-ticked" }, batches[lastAt]?.atMs ?? 0)).toEqual(owed);
        for (const { fact, atMs, decisions } of batches.slice(lastAt + 1)) {
          expect(decide(state, fact, atMs)).toEqual(decisions);
        }
        expect(nextWakeMs(state)).toBeNull();
      }),
      { numRuns: 400 },
    );
  });
});

/** Throws where the log breaks a rule; returns the types of decision seen. */
function checkRules(specs: readonly TaskSpec[], batches: readonly Batch[]): Set<string> {
  const ended = new Map<string, string>();
  const running = new Map<string, number>();
  const dueMs = new Map<string, number>();
  const stops = new Set<string>();
  const heldBy = new Map<string, string>();
  const types = new Set<string>();
  const order = batches.flatMap((batch) => batch.decisions);
  let slots = 0;

  for (const { fact, atMs, decisions } of batches) {
    if (fact.type === "run-submitted") slots = fact.settings.slots;
    if (fact.type === "slots-changed") slots = fact.slots;
    if (fact.type === "attempt-ended" && running.get(fact.taskId) === fact.attempt)
      running.delete(fact.taskId);
    for (const one of decisions) {
      types.add(one.type);
      if (one.type === "run-finished") continue;
      expect(ended.has(one.taskId), `${one.type} of ${one.taskId}, which is settled`).toBe(false);
      if (one.type === "attempt-started") {
        const spec = specs.find(({ id }) => id === one.taskId);
        const dependencies = new Set(spec?.dependsOn);
        for (const dependency of dependencies) expect(ended.get(dependency)).toBe("task-succeeded");
        expect(new Set(one.parents.map(({ taskId }) => taskId))).toEqual(dependencies);
        expect(running.has(one.taskId)).toBe(false);
        expect(dueMs.get(one.taskId) ?? 0).toBeLessThanOrEqual(atMs);
        running.set(one.taskId, one.attempt);
        expect(running.size).toBeLessThanOrEqual(slots);
      } else if (one.type === "attempt-stop-ordered") {
        expect(running.get(one.taskId)).toBe(one.attempt);
        expect(stops.has(`${one.taskId}#${one.attempt}`)).toBe(false);
        stops.add(`${one.taskId}#${one.attempt}`);
      } else if (one.type === "retry-scheduled") {
        dueMs.set(one.taskId, one.dueMs);
      } else {
        ended.set(one.taskId, one.type);
        if (one.type === "task-held") heldBy.set(one.taskId, one.because);
      }
    }
  }

  expect(ended.size).toBe(specs.length);
  expect(order.filter(({ type }) => type === "run-finished")).toHaveLength(1);
  expect(order.at(-1)?.type).toBe("run-finished");

  const broken = (name: string) => ended.get(name) === "task-failed" || ended.get(name) === "task-cancelled";
  const above = new Map<string, Set<string>>();
  for (const { id: name, dependsOn } of specs) {
    const ancestors = new Set(
      dependsOn.flatMap((dependency) => [dependency, ...(above.get(dependency) ?? [])]),
    );
    above.set(name, ancestors);
    const isBelowBroken = [...ancestors].some(broken);
    if (ended.get(name) === "task-held") {
      expect(isBelowBroken).toBe(true);
      const because = heldBy.get(name) ?? "";
      expect(ancestors.has(because) && broken(because)).toBe(true);
    } else expect(isBelowBroken && ended.get(name) !== "task-cancelled").toBe(false);
  }
  const counted = [...ended.values()];
  const last = order.at(-1);
  if (last?.type === "run-finished") {
    for (const [type, count] of [
      ["task-succeeded", last.outcome.succeeded],
      ["task-failed", last.outcome.failed],
      ["task-cancelled", last.outcome.cancelled],
      ["task-held", last.outcome.held],
    ] as const) {
      expect(counted.filter((one) => one === type)).toHaveLength(count);
    }
  }
  return types;
}

describe("work", () => {
  /** Layers of `width` tasks, each of which waits for three of the layer before. */
  function layered(count: number, width: number): TaskSpec[] {
    return Array.from({ length: count }, (_, i) => {
      const from = (Math.floor(i / width) - 1) * width;
      const dependsOn = from < 0 ? [] : [0, 1, 2].map((k) => `t${from + ((i * 7 + k * 13) % width)}`);
      return task(`t${i}`, dependsOn, { priority: i % 5 });
    });
  }

  function steps(plan: readonly TaskSpec[], make: (name: string, attempt: number) => Fact): number {
    const { state, next } = begin(plan);
    for (let name = next.shift(); name !== undefined; name = next.shift()) {
      for (const one of decide(state, make(name, 1), 0))
        if (one.type === "attempt-started") next.push(one.taskId);
    }
    expect(state.isFinished).toBe(true);
    return countSteps(state);
  }

  function begin(plan: readonly TaskSpec[]) {
    const state = createRunState();
    const next: string[] = [];
    for (const one of decide(state, submitted(plan, 100), 0)) {
      if (one.type === "attempt-started") next.push(one.taskId);
    }
    return { state, next };
  }

  test.each([
    ["all succeed", succeeded],
    ["all that start fail", failed],
    [
      "a third fails",
      (name: string, n: number) => (Number(name.slice(1)) % 3 === 0 ? failed(name, n) : succeeded(name, n)),
    ],
  ])(
    "of a run in which %s stays within (tasks + edges) log tasks, and ten times the plan is ten times the work",
    (_, make) => {
      const [small, large] = [steps(layered(1000, 100), make), steps(layered(10_000, 100), make)];
      expect(large).toBeLessThan(3 * (10_000 + 30_000) * Math.log2(10_000));
      expect(large / small).toBeLessThan(12);
    },
  );

  test("of one fact does not grow with tasks it does not concern", () => {
    const costOfOneEnd = (count: number) => {
      const { state } = begin(layered(count, 200));
      const before = countSteps(state);
      decide(state, succeeded("t0"), 0);
      return countSteps(state) - before;
    };
    expect(costOfOneEnd(20_000)).toBeLessThanOrEqual(costOfOneEnd(1000) + 20);
  });

  test("a chain of 20,000 is held from its head, and cancelled, without deep recursion", () => {
    const chain = Array.from({ length: 20_000 }, (_, i) => task(`t${i}`, i === 0 ? [] : [`t${i - 1}`]));
    const heldRun = begin(chain).state;
    expect(decide(heldRun, failed("t0"), 0)).toHaveLength(20_001);
    const cancelledRun = begin(chain).state;
    expect(decide(cancelledRun, cancel(null), 0)).toHaveLength(20_000);
    expect(decide(cancelledRun, failed("t0"), 0).at(-1)).toMatchObject({ outcome: { cancelled: 20_000 } });
    expect(cancelledRun.dag.indexes.get(id("t19999"))).toBe(19_999);
  });
});

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
