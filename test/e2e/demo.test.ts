/** The classic example, as a new user meets it: three tasks, a scripted agent, patches, apply and undo. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunViewJson } from "../../src/observe/run-view-json.ts";
import { type CliResult, commitAll, createRig, git, type Rig } from "../support/bulkhead-cli.ts";
import {
  endRig,
  expectCode,
  outputOf,
  placeOf,
  readEvents,
  statesOf,
  statusOf,
  taskOf,
} from "../support/e2e-rig.ts";

const EXAMPLE = new URL("../../examples/auth-service", import.meta.url).pathname;

function copyExample(rig: Rig, config?: (text: string) => string): string {
  const path = join(rig.root, "auth-service");
  cpSync(EXAMPLE, path, { recursive: true });
  const file = join(path, "bulkhead.yaml");
  if (config !== undefined) writeFileSync(file, config(readFileSync(file, "utf8")));
  git(rig.root, "init", "-q", "-b", "main", path);
  commitAll(path, "start");
  return path;
}

/** Every file below a directory with its time stamp and size: what `ls -lR` would show to have changed. */
function fingerprint(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const { mtimeMs, ctimeMs, size } = statSync(join(dir, name));
      return `${name} ${mtimeMs} ${ctimeMs} ${size}`;
    });
}

/** The example's own tests, on the host. */
function runTests(repository: string): { code: number | null; text: string } {
  const done = spawnSync("python3", ["-m", "unittest", "-v"], {
    cwd: repository,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], PYTHONDONTWRITEBYTECODE: "1" },
  });
  return { code: done.status, text: done.stderr };
}

describe("three tasks with a scripted agent", () => {
  let rig: Rig;
  let repository: string;
  let before: string[];
  let ran: CliResult;
  let status: RunViewJson;

  beforeAll(async () => {
    rig = createRig();
    repository = copyExample(rig);
    git(repository, "status");
    before = fingerprint(repository);
    ran = await rig.run(["run", "tasks/"], { cwd: repository });
    status = await statusOf(rig);
  });
  afterAll(() => endRig(rig));

  test("all succeed; the report says what changed and what to do next", () => {
    expectCode(ran, 0);
    expect(ran.stderr).toBe("");
    expect(status.state).toBe("succeeded");
    expect(statesOf(status)).toEqual({
      auth_refactor: "succeeded",
      test_auth: "succeeded",
      docs_update: "succeeded",
    });
    expect(ran.stdout).toMatch(/Run \S+ succeeded in [\d.]+s: 3 succeeded/);
    expect(ran.stdout).toMatch(/✓ auth_refactor {2}1 file \+26 -8/);
    expect(ran.stdout).toContain(`bulkhead apply ${status.run_id}`);
    for (const task of status.tasks) {
      expect(task.attempt).toBe(1);
      expect(task.agent).toEqual({ name: "scripted-agent", version: "1.0" });
      expect(task.status?.state).toBe("done");
      expect(task.use?.peak_memory_bytes).toBeGreaterThan(1_000_000);
      expect(task.caps.find(({ cap }) => cap === "memory")).toMatchObject({
        requested: 256 * 1024 ** 2,
        actual: 256 * 1024 ** 2,
        state: "enforced",
      });
    }
    expect(taskOf(status, "test_auth").artifacts.map(({ name }) => name)).toEqual(["test_auth.py"]);
  });

  test("a task starts only after those it depends on have succeeded", () => {
    const events = readEvents(rig);
    const succeeded = (id: string): number => placeOf(events, "task-succeeded", id);
    const started = (id: string): number => placeOf(events, "attempt-started", id);
    expect(started("test_auth")).toBeGreaterThan(succeeded("auth_refactor"));
    expect(started("docs_update")).toBeGreaterThan(succeeded("auth_refactor"));
    expect(started("docs_update")).toBeGreaterThan(succeeded("test_auth"));
    for (const id of ["auth_refactor", "test_auth", "docs_update"]) {
      // The patch is known before "succeeded" is said.
      expect(succeeded(id)).toBeGreaterThan(placeOf(events, "attempt-ended", id));
    }
  });

  test("a dependent sees the patch in its workspace and over the bus; every call is in the log", async () => {
    const calls = readEvents(rig).flatMap(({ event }) => (event.type === "bus-called" ? [event] : []));
    const gets = calls.filter(({ method }) => method === "get_file");
    expect(gets.map(({ taskId, errorCode }) => [taskId, errorCode])).toEqual([
      ["test_auth", null],
      ["docs_update", null],
    ]);
    for (const call of calls) {
      expect(call.tookMs).toBeGreaterThanOrEqual(0);
      expect(call.requestId).not.toBeNull();
    }
    // The agent itself fails where the two differ or the class is missing.
    expect(await outputOf(rig, "test_auth")).toContain("test_equal_passwords_are_stored_differently");
    expect(taskOf(status, "test_auth").patch?.parent).not.toBe(status.base_commit);
  });

  test("the run has touched nothing of the user's", () => {
    expect(fingerprint(repository)).toEqual(before);
    expect(git(repository, "status", "--porcelain", "--ignored")).toBe("");
    expect(git(repository, "for-each-ref", "--format=%(refname)")).toBe("refs/heads/main\n");
    expect(git(repository, "rev-parse", "HEAD").trim()).toBe(status.base_commit);
  });

  test("diff shows each patch; one task's is fit for git apply", async () => {
    const stat = expectCode(await rig.run(["diff", "--stat"]), 0).stdout;
    expect(stat).toContain("# auth_refactor: 1 file +26 -8");
    expect(stat).toContain("auth_service/auth.py");
    expect(stat).toContain("tests/test_auth.py");
    expect(stat).toContain("docs/auth.md");
    const all = expectCode(await rig.run(["diff"]), 0).stdout;
    expect(all).toContain("+class AuthService:");
    const one = expectCode(await rig.run(["diff", "latest", "auth_refactor"]), 0).stdout;
    expect(one.startsWith("diff --git ")).toBe(true);
    const check = spawnSync("git", ["apply", "--check"], { cwd: repository, input: one, encoding: "utf8" });
    expect(check.stderr).toBe("");
    expect(check.status).toBe(0);
  });

  test("apply puts the three patches into the work tree, undo takes them back", async () => {
    const dry = expectCode(await rig.run(["apply", "--dry-run"], { cwd: repository }), 0);
    expect(dry.stdout).toContain("it would apply cleanly; nothing was changed");
    expect(git(repository, "status", "--porcelain")).toBe("");

    const applied = expectCode(await rig.run(["apply", "-y"], { cwd: repository }), 0);
    expect(applied.stdout).toContain("3 patches: auth_refactor, test_auth, docs_update");
    expect(applied.stdout).toContain(`to take it back: bulkhead undo ${status.run_id}`);
    const changed = git(repository, "status", "--porcelain", "--untracked-files=all")
      .split("\n")
      .map((line) => line.slice(3))
      .filter((name) => name !== "")
      .sort();
    expect(changed).toEqual(["auth_service/auth.py", "docs/auth.md", "tests/test_auth.py"]);
    expect(readFileSync(join(repository, "auth_service/auth.py"), "utf8")).toContain("class AuthService");
    expect(readFileSync(join(repository, "docs/auth.md"), "utf8")).toContain("It is covered by 5 tests");
    expect(statSync(join(repository, "tests/test_auth.py")).uid).toBe(process.getuid?.());
    const tests = runTests(repository);
    expect(tests.code, tests.text).toBe(0);
    expect(tests.text).toContain("Ran 8 tests");

    const again = await rig.run(["status", "--json"]);
    expect(JSON.parse(again.stdout).applied).toMatchObject([
      { task_ids: ["auth_refactor", "test_auth", "docs_update"], undone: false },
    ]);

    const undone = expectCode(await rig.run(["undo"], { cwd: repository }), 0);
    expect(undone.stdout).toContain("took back auth_refactor, test_auth, docs_update");
    expect(git(repository, "status", "--porcelain", "--untracked-files=all")).toBe("");
    expect(existsSync(join(repository, "tests/test_auth.py"))).toBe(false);
    expect(git(repository, "diff", "HEAD")).toBe("");

    const twice = expectCode(await rig.run(["undo"], { cwd: repository }), 1);
    expect(twice.stderr).toBe(
      `error: nothing of run ${status.run_id} is applied\nhint: \`bulkhead status --all\` lists runs; name the one that was applied\n`,
    );
  });

  test("apply is refused as a whole where it would run over the user's own work", async () => {
    const mine = join(repository, "auth_service/auth.py");
    const committed = readFileSync(mine, "utf8");
    const changed = `${committed}# not committed yet\n`;
    writeFileSync(mine, changed);
    const refused = expectCode(await rig.run(["apply", "-y"], { cwd: repository }), 1);
    expect(refused.stderr).toMatch(/^error: .*\n?.*auth_service\/auth\.py/);
    expect(refused.stderr).toContain("hint: ");
    expect(readFileSync(mine, "utf8")).toBe(changed);
    expect(git(repository, "status", "--porcelain", "--untracked-files=all")).toBe(
      " M auth_service/auth.py\n",
    );
    writeFileSync(mine, committed);
    expect(git(repository, "status", "--porcelain")).toBe("");
  });

  test("apply --branch makes a branch and leaves the work tree alone", async () => {
    expectCode(
      await rig.run(["apply", "latest", "test_auth", "--branch", "agents/auth", "-y"], { cwd: repository }),
      0,
    );
    expect(git(repository, "status", "--porcelain")).toBe("");
    expect(git(repository, "diff", "--name-only", "main", "agents/auth").trim().split("\n")).toEqual([
      "auth_service/auth.py",
      "tests/test_auth.py",
    ]);
    expectCode(await rig.run(["undo"], { cwd: repository }), 0);
    expect(git(repository, "branch", "--list", "agents/auth")).toBe("");
  });
});

describe("a task that fails half-way", () => {
  let rig: Rig;
  beforeAll(() => {
    rig = createRig();
  });
  afterAll(() => endRig(rig));

  test("holds what depends on it, and the report names the cause", async () => {
    const repository = copyExample(rig, (text) =>
      text.replace("defaults:\n", "defaults:\n  env: {SCRIPTED_AGENT_FAIL: auth_refactor}\n"),
    );
    const { stdout } = expectCode(await rig.run(["run", "tasks/"], { cwd: repository }), 1);
    const status = await statusOf(rig);
    expect(status.state).toBe("failed");
    expect(statesOf(status)).toEqual({ auth_refactor: "failed", test_auth: "held", docs_update: "held" });
    expect(taskOf(status, "auth_refactor").failure).toMatchObject({
      reason: "exit",
      fault: "agent",
      headline: "ended with exit code 1",
    });
    expect(taskOf(status, "docs_update")).toMatchObject({ held_because: "auth_refactor", attempt: 0 });
    expect(stdout).toMatch(/✗ auth_refactor: ended with exit code 1/);
    expect(stdout).toContain("◌ because of auth_refactor: docs_update, test_auth");
    expect(stdout).toMatch(/Work saved: 2 tasks, 2 attempts .*not started/);
    expect(stdout).toContain(`bulkhead logs ${status.run_id} auth_refactor`);
    expect(await outputOf(rig, "auth_refactor")).toContain("cannot go on: asked to fail");

    const refused = expectCode(await rig.run(["apply", "latest", "test_auth"], { cwd: repository }), 1);
    expect(refused.stderr).toBe(
      "error: test_auth cannot be applied: it was held, because auth_refactor did not succeed\n" +
        "hint: only tasks that succeeded have a patch; leave the tasks out to apply all of those\n",
    );
    mkdirSync(join(rig.root, "elsewhere"));
    expectCode(await rig.run(["logs", "latest", "test_auth"], { cwd: join(rig.root, "elsewhere") }), 2);
  });
});
