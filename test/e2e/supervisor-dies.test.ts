/** The worst end of a supervisor: killed while its tasks run. What is said, what is left, and who takes it away (rows P6, B8). */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRepository, createRig, git, type Rig } from "../support/bulkhead-cli.ts";
import {
  endRig,
  expectCode,
  hasEvent,
  SMALL,
  statesOf,
  statusOf,
  supervisorPids,
  waitFor,
  writePlan,
} from "../support/e2e-rig.ts";
import { findLeftovers, NOTHING_LEFT } from "../support/leftovers.ts";

let rig: Rig;
let repository: string;

beforeAll(() => {
  rig = createRig();
  repository = createRepository(join(rig.root, "repo"), { "a.txt": "a\n" });
});
afterAll(() => endRig(rig));

test("the client says that the supervisor is gone, status that nobody drives the run; gc takes away what is left", async () => {
  const plan = writePlan(rig, {
    defaults: SMALL,
    tasks: [
      { id: "done", run: "echo done > done.txt" },
      { id: "long-1", depends_on: ["done"], run: "sleep 100" },
      { id: "long-2", depends_on: ["done"], run: "sleep 100" },
      { id: "after", depends_on: ["long-1"], run: "true" },
    ],
  });
  const client = rig.run(["run", plan], { cwd: repository });
  await waitFor("both tasks to run", () =>
    ["long-1", "long-2"].every((id) => hasEvent(rig, "sandbox-started", id)),
  );
  const [pid] = supervisorPids(rig.stateDir);
  if (pid === undefined) throw new Error("there is no supervisor");
  process.kill(pid, "SIGKILL");

  const ran = await client;
  expect(ran.code).toBe(3);
  expect(ran.stderr).toMatch(/^error: lost the supervisor while run \S+ was going on\nhint: /);
  const left = await findLeftovers(rig.stateDir);
  expect(left.containers).toHaveLength(2);

  // What was done is safe; the rest is not claimed to run under anybody.
  const status = await statusOf(rig);
  expect(statesOf(status)).toMatchObject({ done: "succeeded", after: "waiting" });
  // A script that waits for the end of a run sees that it will not come.
  expect(status).toMatchObject({ state: "running", driven: false });
  const words = expectCode(await rig.run(["status"]), 0).stdout;
  expect(words).toContain("interrupted: no supervisor drives it");
  const patch = expectCode(await rig.run(["diff", "latest", "done"]), 0);
  expect(patch.stdout).toContain("+done");
  const cancel = await rig.run(["cancel", "latest"]);
  expect(cancel.code).toBe(2);
  expect(cancel.stderr).toContain("no supervisor drives it");

  const dry = expectCode(await rig.run(["gc", "--dry-run"]), 0);
  expect(dry.stdout).toContain("container");
  expect((await findLeftovers(rig.stateDir)).containers).toHaveLength(2);
  expectCode(await rig.run(["gc"]), 0);
  expect(await findLeftovers(rig.stateDir)).toEqual(NOTHING_LEFT);
  expect(git(repository, "status", "--porcelain")).toBe("");

  // The state directory is as good as before.
  const next = await rig.run(["run", "-"], {
    cwd: repository,
    input: JSON.stringify({ defaults: SMALL, tasks: [{ id: "next", run: "true" }] }),
  });
  expectCode(next, 0);
  expect(expectCode(await rig.run(["gc"]), 0).stdout).not.toContain("container");
});
