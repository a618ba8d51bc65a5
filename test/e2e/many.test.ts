/** Twenty tasks at once: no race, no name used twice, nothing left (rows P9, D2). */
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createRepository, createRig, git, type Rig } from "../support/bulkhead-cli.ts";
import { endRig, expectCode, readEvents, SMALL, statusOf, writePlan } from "../support/e2e-rig.ts";

let rig: Rig;
let repository: string;

beforeEach(() => {
  rig = createRig();
  repository = createRepository(join(rig.root, "repo"), { "a.txt": "a\n", "src/b.txt": "b\n" });
});
afterEach(() => endRig(rig));

/** Root tasks that each change one file of their own and one that all share. */
function manyTasks(count: number): object {
  return {
    defaults: SMALL,
    tasks: Array.from({ length: count }, (_, index) => ({
      id: `task-${index}`,
      run: `echo "$BULKHEAD_TASK" > src/own-${index}.txt; echo ${index} >> a.txt; ls src | wc -l`,
    })),
  };
}

async function runMany(count: number, args: readonly string[], driver: string): Promise<void> {
  const plan = writePlan(rig, manyTasks(count));
  const ran = await rig.run(["run", plan, "--slots", String(count), ...args], { cwd: repository });
  expectCode(ran, 0);
  const status = await statusOf(rig);
  expect(status.counts).toMatchObject({ succeeded: count });
  expect(status.warnings).toEqual([]);
  expect(new Set(status.tasks.map((task) => task.driver))).toEqual(new Set([driver]));
  expect(new Set(status.tasks.map((task) => task.container_id)).size).toBe(count);
  // Each from the base alone: nobody saw another's files.
  for (const task of status.tasks) {
    expect(task.patch).toMatchObject({ parent: expect.any(String), files: 2, insertions: 2, deletions: 0 });
  }
  expect(new Set(status.tasks.map((task) => task.patch?.commit)).size).toBe(count);
  const ended = readEvents(rig).flatMap(({ event }) =>
    event.type === "attempt-ended" && event.outcome.status === "submitted"
      ? [{ id: event.taskId, files: event.outcome.patch.files }]
      : [],
  );
  expect(ended).toHaveLength(count);
  for (const { id, files } of ended) {
    const own = `src/own-${id.slice("task-".length)}.txt`;
    expect(new Map(files.map(({ path, kind }) => [path, kind]))).toEqual(
      new Map([
        ["a.txt", "modified"],
        [own, "added"],
      ]),
    );
  }
  expect(git(repository, "status", "--porcelain")).toBe("");
}

test("20 root tasks with 20 slots start together and give 20 patches", async () => {
  await runMany(20, [], process.getuid?.() === 0 ? "overlay" : "copy");
  const events = readEvents(rig);
  const lastStart = events.findLastIndex(({ event }) => event.type === "attempt-started");
  const firstEnd = events.findIndex(({ event }) => event.type === "attempt-ended");
  expect(lastStart).toBeLessThan(firstEnd);
});

test("8 root tasks with copied workspaces", async () => {
  await runMany(8, ["--workspace", "copy"], "copy");
});

test("a plan from standard input with 2 slots: never more than 2 at once, lower priority numbers first", async () => {
  const tasks = [3, 1, 2, 0].map((priority) => ({ id: `p${priority}`, priority, run: "sleep 0.2" }));
  const ran = await rig.run(["run", "-", "--slots", "2", "--json"], {
    cwd: repository,
    input: JSON.stringify({ defaults: SMALL, tasks }),
  });
  expectCode(ran, 0);
  expect(JSON.parse(ran.stdout)).toMatchObject({ state: "succeeded", slots: 2 });
  let running = 0;
  let most = 0;
  const order: string[] = [];
  for (const { event } of readEvents(rig)) {
    if (event.type === "attempt-started") {
      order.push(event.taskId);
      running += 1;
      most = Math.max(most, running);
    }
    if (event.type === "attempt-ended") running -= 1;
  }
  expect(most).toBe(2);
  expect(order).toEqual(["p0", "p1", "p2", "p3"]);
});
