/** The first minutes of a new user: `init` in an empty repository, what it says to do next, and looking at the result. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commitAll, createRig, git, type Rig } from "../support/bulkhead-cli.ts";
import { endRig, expectCode, statesOf, statusOf } from "../support/e2e-rig.ts";

let rig: Rig;
let repository: string;

beforeAll(() => {
  rig = createRig();
  repository = join(rig.root, "repo");
  mkdirSync(repository);
  git(repository, "init", "-q", "-b", "main");
});
afterAll(() => endRig(rig));

test("init writes a plan that runs as it is, once it is committed", async () => {
  const made = expectCode(await rig.run(["init"], { cwd: repository }), 0);
  expect(made.stdout).toContain("bulkhead run tasks/");
  const early = await rig.run(["run", "tasks/"], { cwd: repository });
  expectCode(early, 2);
  expect(early.stderr).toContain("has no commit yet");
  commitAll(repository, "bulkhead");

  const again = await rig.run(["init"], { cwd: repository });
  expect(again.code).toBe(2);
  expect(again.stderr).toContain("bulkhead.yaml");

  expectCode(await rig.run(["run", "tasks/"], { cwd: repository }), 0);
  const status = await statusOf(rig);
  expect(statesOf(status)).toEqual({
    "count-files": "succeeded",
    "list-notes": "succeeded",
    "write-report": "succeeded",
  });
});

test("graph draws the run and, without running it, the plan", async () => {
  const run = expectCode(await rig.run(["graph"], { cwd: repository }), 0);
  expect(run.stdout).toBe(
    "Level 1\n  ✓ count-files\n  ✓ list-notes\nLevel 2\n  ✓ write-report  ← count-files, list-notes  Join the findings in one report\n",
  );
  const plan = expectCode(await rig.run(["graph", "tasks/", "--json"], { cwd: repository }), 0);
  expect(JSON.parse(plan.stdout).tasks).toMatchObject([
    { id: "count-files", level: 1, state: null },
    { id: "list-notes", level: 1, state: null },
    { id: "write-report", level: 2, state: null, depends_on: ["count-files", "list-notes"] },
  ]);
});

test("what the report says to type next works as it is written", async () => {
  const { run_id: run } = await statusOf(rig);
  expect(expectCode(await rig.run(["diff", run ?? ""]), 0).stdout).toContain("+++ b/reports/");
  // Nobody can answer without a terminal, so nothing is done.
  const unasked = await rig.run(["apply", run ?? ""], { cwd: repository });
  expect(unasked.code).toBe(2);
  expect(unasked.stderr).toBe(
    "error: this needs a yes, and there is no terminal to ask on\nhint: look at it with --dry-run, then add --yes\n",
  );
  expect(existsSync(join(repository, "reports"))).toBe(false);
  expectCode(await rig.run(["apply", run ?? "", "--yes"], { cwd: repository }), 0);
  expect(readFileSync(join(repository, "reports/files.txt"), "utf8")).toMatch(/\d+ yaml/);
  expectCode(await rig.run(["undo", run ?? ""], { cwd: repository }), 0);
  expect(git(repository, "status", "--porcelain")).toBe("");
  // No folder of nothing but what was taken back.
  expect(existsSync(join(repository, "reports"))).toBe(false);
});
