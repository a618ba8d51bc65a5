/**
 * Claims: all decisions of a run of 10,000 tasks with 30,000 edges take well under a second; the cost of one task or edge does not grow
 * with the plan; scanning the plan at each completion, as simple schedulers do, costs many times as much.
 * Run with `node bench/decide.bench.ts`.
 */
import { fileURLToPath } from "node:url";
import type { TaskSpec } from "../src/model/task.ts";
import { decide } from "../src/tasks/decide.ts";
import { createRunState } from "../src/tasks/run-state.ts";
import { submitted, succeeded, task } from "../test/unit/tasks/run-fixtures.ts";
import { type BenchRow, printRows, rowOf, spread } from "./support/bench-row.ts";

const RUNS = 12;
const WARM_UP_RUNS = 3;
const SLOTS = 64;
const WIDTH = 100;
const EDGES_PER_TASK = 3;

/** Measures the scheduler; every run measures all sides in turn, so that a slow moment of the machine hits them alike. */
export async function runDecideBench(): Promise<BenchRow[]> {
  const [small, medium, large] = [makePlan(1000), makePlan(2000), makePlan(10_000)];
  const perItem: number[] = [];
  const perBudget: number[] = [];
  const perRival: number[] = [];
  const largeMs: number[] = [];
  for (let run = -WARM_UP_RUNS; run < RUNS; run += 1) {
    // Ten small plans hold as many tasks and edges as one large one.
    const smallMs = timed(() => {
      for (let i = 0; i < 10; i += 1) check(runByDecider(small), small);
    });
    const ms = timed(() => check(runByDecider(large), large));
    const mediumMs = timed(() => check(runByDecider(medium), medium));
    const rivalMs = timed(() => check(runByScan(medium), medium));
    if (run < 0) continue;
    largeMs.push(ms);
    perItem.push(ms / smallMs);
    perBudget.push(ms / 1000);
    perRival.push(rivalMs / mediumMs);
  }
  const figures = spread(largeMs).map((ms) => ms.toFixed(0));
  return [
    rowOf(
      "decide: share of one second that all decisions of 10,000 tasks / 30,000 edges take (less is better)",
      "a budget of 1 s",
      perBudget,
      `${figures.join(" / ")} ms of CPU for 10,000 starts and ends`,
    ),
    rowOf(
      "decide: cost per task and edge of 10,000 / 30,000 over that of 1,000 / 3,000 (1 is linear)",
      "the same scheduler on a tenth of the plan",
      perItem,
    ),
    rowOf(
      "decide: how many times faster than scanning 2,000 tasks at each completion (more is better; grows with the plan)",
      "a scheduler without counters, same plan and order",
      perRival,
    ),
  ];
}

/** Layers of 100 tasks; each waits for three of the layer before. The first layer's edges are made up for by the second's. */
function makePlan(count: number): TaskSpec[] {
  return Array.from({ length: count }, (_, i) => {
    const from = (Math.floor(i / WIDTH) - 1) * WIDTH;
    const edges = i < 2 * WIDTH ? 2 * EDGES_PER_TASK : EDGES_PER_TASK;
    const dependsOn = Array.from({ length: edges }, (_, k) => `t${from + ((i * 7 + k * 13) % WIDTH)}`);
    return task(`t${i}`, from < 0 ? [] : dependsOn, { priority: i % 5 });
  });
}

/** Each attempt submits as soon as those started before it have. Returns the order of starts. */
function runByDecider(plan: readonly TaskSpec[]): string[] {
  const state = createRunState();
  const started: string[] = [];
  let decisions = decide(state, submitted(plan, SLOTS), 0);
  for (let done = 0; ; done += 1) {
    for (const one of decisions) if (one.type === "attempt-started") started.push(one.taskId);
    const next = started[done];
    if (next === undefined) return started;
    decisions = decide(state, succeeded(next), 0);
  }
}

function runByScan(plan: readonly TaskSpec[]): string[] {
  const started: string[] = [];
  const isStarted = new Set<string>();
  const isDone = new Set<string>();
  for (let done = 0; ; done += 1) {
    for (let running = started.length - done; running < SLOTS; running += 1) {
      let best: TaskSpec | null = null;
      for (const spec of plan) {
        if (isStarted.has(spec.id) || (best && best.priority <= spec.priority)) continue;
        if (spec.dependsOn.every((dependency) => isDone.has(dependency))) best = spec;
      }
      if (!best) break;
      isStarted.add(best.id);
      started.push(best.id);
    }
    const next = started[done];
    if (next === undefined) return started;
    isDone.add(next);
  }
}

function check(started: readonly string[], plan: readonly TaskSpec[]): void {
  if (started.length !== plan.length) throw new Error(`${started.length} of ${plan.length} tasks ran`);
}

/** Milliseconds of CPU that this thread spent: the work waits for nothing, and other load on the machine must not count. */
function timed(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const plan = makePlan(1000);
  if (runByDecider(plan).join() !== runByScan(plan).join()) throw new Error("the two schedulers differ");
  printRows(await runDecideBench());
}
