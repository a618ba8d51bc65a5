/** What a run may not begin with is refused once, before anything was started: exit code 3 and the next step. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { databasePath, supervisorSocketPath } from "../../src/util/state-layout.ts";
import { createRepository, createRig, type Rig } from "../support/bulkhead-cli.ts";
import { endRig, SMALL, writePlan } from "../support/e2e-rig.ts";

let rig: Rig;
let repository: string;
beforeAll(() => {
  rig = createRig();
  repository = createRepository(join(rig.root, "repo"), { "README.md": "hello\n" });
});
afterAll(() => endRig(rig));

const nothingStarted = (stateDir: string) => {
  expect(existsSync(databasePath(stateDir))).toBe(false);
  expect(existsSync(supervisorSocketPath(stateDir))).toBe(false);
};

test.each([
  ["by the plan", { runtime: "no-such-runtime" }, []],
  ["by --runtime, over what the plan says", { runtime: "runc" }, ["--runtime", "no-such-runtime"]],
])("a runtime that the engine lacks, named %s", async (_by, defaults, options) => {
  const plan = writePlan(rig, { defaults: { ...SMALL, ...defaults }, tasks: [{ id: "a", run: "true" }] });
  const { code, stderr, stdout } = await rig.run(["run", plan, ...options], { cwd: repository });
  expect(code, stderr).toBe(3);
  expect(stdout).toBe("");
  expect(stderr).toMatch(/the engine does not list the OCI runtime no-such-runtime; it has .*runc/);
  expect(stderr).toContain("name one of these with --runtime or `runtime:`");
  nothingStarted(rig.stateDir);
});

test("overlay workspaces that cannot be had", async () => {
  const plan = writePlan(rig, { defaults: SMALL, tasks: [{ id: "a", run: "true" }] });
  // Mount options cannot carry a comma, whoever runs this.
  const stateDir = join(rig.root, "state,with-comma");
  const { code, stderr } = await rig.run(["run", plan, "--workspace", "overlay"], {
    cwd: repository,
    env: { BULKHEAD_STATE_DIR: stateDir },
  });
  expect(code, stderr).toBe(3);
  expect(stderr).toContain("overlay workspaces cannot be had here: ");
  expect(stderr).toContain("use --workspace copy, or auto");
  nothingStarted(stateDir);
});
