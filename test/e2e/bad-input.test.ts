/** What people see when something is wrong with what they asked for, word by word, with the exit code of who has to act. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CliResult, createRepository, createRig, git, type Rig } from "../support/bulkhead-cli.ts";
import { endRig, expectCode, readEvents, SMALL, statusOf, taskOf } from "../support/e2e-rig.ts";

let rig: Rig;
let repository: string;

beforeAll(() => {
  rig = createRig();
  repository = createRepository(join(rig.root, "repo"), { "a.txt": "a\n" });
});
afterAll(() => endRig(rig));

/** Runs a YAML plan kept beside the repository. */
function runPlan(yaml: string, args: readonly string[] = [], cwd = repository): Promise<CliResult> {
  writeFileSync(join(rig.root, "plan.yaml"), yaml);
  return rig.run(["run", join(rig.root, "plan.yaml"), ...args], { cwd });
}

const PLACE = (line: number): string => `${rig.root}/plan.yaml:${line}`;

/** Exact text on standard error, nothing on standard output, and no supervisor was started for it. */
function expectRefused(result: CliResult, code: number, stderr: string): void {
  expect(result.stderr).toBe(stderr);
  expect(result.stdout).toBe("");
  expect(result.code).toBe(code);
}

describe("plans that cannot run (exit code 2)", () => {
  test("nothing was started for any of them", async () => {
    const own = createRig();
    try {
      const result = await own.run(["run", join(own.root, "none.yaml")], { cwd: repository });
      expect(result.code).toBe(2);
      expect(existsSync(own.stateDir)).toBe(false);
    } finally {
      await endRig(own);
    }
  });

  test("a cycle is shown as a path", async () => {
    const result = await runPlan(
      "tasks:\n  - {id: a, run: 'true', depends_on: [c]}\n  - {id: b, run: 'true', depends_on: [a]}\n  - {id: c, run: 'true', depends_on: [b]}\n",
    );
    expectRefused(
      result,
      2,
      `error: the plan has 1 problem:\n  ${PLACE(2)}: task "a": depends_on: cycle: a -> c -> b -> a\n`,
    );
  });

  test("every problem at once, each with its line, the nearest name and what would do", async () => {
    const result = await runPlan(
      [
        "tasks:",
        "  - {id: a, run: 'true', depnds_on: [b]}",
        "  - id: b",
        "    run: 'true'",
        "  - id: b",
        "    run: 'true'",
        "  - {id: ../evil, run: 'true'}",
        "  - {id: c, run: 'true', caps: {memory: 12 elephants}}",
        "  - {id: d, run: 'true', depends_on: [aa]}",
        "  - {id: e, prompt: hello, agent: clade}",
        "  - {id: f}",
        "  - {id: g, run: 'true', timeout: 5 fortnights}",
        "agents:",
        "  claude: {argv: [claude]}",
        "",
      ].join("\n"),
    );
    const dir = `${rig.root}/plan.yaml`;
    expectRefused(
      result,
      2,
      [
        "error: the plan has 8 problems:",
        `  ${dir}:2: task "a": depnds_on: unknown field; did you mean depends_on?`,
        `  ${dir}:5: task "b": id: "b" is the id of another task already, in ${dir}:3; use another id`,
        `  ${dir}:7: task "../evil": id: "../evil" is not a task id; use 1 to 64 of A-Z a-z 0-9 _ - . , starting with a letter or digit, without .., not ending in . or .lock`,
        `  ${dir}:8: task "c": caps.memory: "12 elephants" is not a size; use e.g. 512m, 2GiB`,
        `  ${dir}:9: task "d": depends_on: "aa" is not a task of this plan; did you mean a?`,
        `  ${dir}:10: task "e": agent: "clade" is not a defined agent; use claude; did you mean claude?`,
        `  ${dir}:11: task "f": says nothing to do; use run (a shell script), prompt (for an agent) or command (arguments of an agent)`,
        `  ${dir}:12: task "g": timeout: "5 fortnights" is not a time; use e.g. 90s, 30m, 1h30m, or a number of seconds`,
        "",
      ].join("\n"),
    );
  });

  test("a missing file, an empty folder, text that is no YAML", async () => {
    expectRefused(
      await rig.run(["run", "tasks.yaml"], { cwd: repository }),
      2,
      "error: the plan has 1 problem:\n  tasks.yaml: there is no such file or folder\n",
    );
    mkdirSync(join(rig.root, "empty"), { recursive: true });
    expectRefused(
      await rig.run(["run", join(rig.root, "empty")], { cwd: repository }),
      2,
      `error: the plan has 1 problem:\n  ${rig.root}/empty: the folder holds no *.json, *.yaml or *.yml\n`,
    );
    const broken = await runPlan("tasks: [\n  {id: a\n");
    expect(broken.code).toBe(2);
    expect(broken.stderr).toMatch(/^error: the plan has \d problems?:\n {2}\S+plan\.yaml:\d+: /);
  });

  test("a wrong bulkhead.yaml is refused, also in JSON", async () => {
    const other = createRepository(join(rig.root, "misconfigured"), {
      "bulkhead.yaml": "defaults:\n  slot: 3\n",
    });
    const text =
      "the configuration has 1 problem:\n  bulkhead.yaml:2: defaults.slot: unknown field; did you mean slots?";
    expectRefused(await runPlan("tasks: [{id: a, run: 'true'}]\n", [], other), 2, `error: ${text}\n`);
    const asJson = await runPlan("tasks: [{id: a, run: 'true'}]\n", ["--json"], other);
    expect(asJson.code).toBe(2);
    expect(JSON.parse(asJson.stderr)).toMatchObject({
      error: {
        code: "config-invalid",
        message: text,
        data: { problems: [{ file: "bulkhead.yaml", line: 2, field: "defaults.slot", value: 3 }] },
      },
    });
  });
});

describe("places where nothing can run", () => {
  const plan = "tasks: [{id: a, run: 'true'}]\n";

  test("outside of a repository", async () => {
    const dir = join(rig.root, "no-repository");
    mkdirSync(dir, { recursive: true });
    expectRefused(
      await runPlan(plan, [], dir),
      2,
      `error: ${dir} is not in a git repository\nhint: Run bulkhead inside a repository, or name one with --repo.\n`,
    );
  });

  test("a repository without a commit", async () => {
    const dir = join(rig.root, "unborn");
    mkdirSync(dir, { recursive: true });
    git(dir, "init", "-q", "-b", "main");
    expectRefused(
      await runPlan(plan, [], dir),
      2,
      `error: ${dir} has no commit yet: HEAD points at an unborn branch\nhint: Make a first commit; attempts start from a commit.\n`,
    );
  });

  test("a bare repository", async () => {
    const dir = join(rig.root, "bare.git");
    git(rig.root, "clone", "-q", "--bare", repository, dir);
    expectRefused(
      await runPlan(plan, [], dir),
      2,
      `error: ${dir} is a bare repository: there is no work tree to start from\nhint: Name a checked-out work tree; \`git worktree add\` makes one from a bare repository.\n`,
    );
  });

  test("no engine at the named place: exit code 3, and no other engine is taken instead", async () => {
    expectRefused(
      await runPlan(plan, ["--engine", "unix:///nonexistent.sock"]),
      3,
      "error: no container engine answers:\n  unix:///nonexistent.sock (--engine): no such socket\n" +
        "hint: start it, or name another with --engine\n",
    );
    const byVariable = await rig.run(["run", join(rig.root, "plan.yaml")], {
      cwd: repository,
      env: { DOCKER_HOST: "unix:///nonexistent.sock", BULKHEAD_ENGINE: undefined },
    });
    expect(byVariable.code).toBe(3);
    expect(byVariable.stderr).toContain("unix:///nonexistent.sock (DOCKER_HOST): no such socket");
  });

  test("an image that the engine does not have: exit code 3 before anything starts", async () => {
    expectRefused(
      await runPlan("tasks: [{id: a, run: 'true', image: 'bulkhead/none:1'}]\n"),
      3,
      "error: the engine does not have the image bulkhead/none:1\n" +
        "hint: run `bulkhead setup` for bulkhead's own image, or `docker pull bulkhead/none:1`\n",
    );
  });

  test("without preflight the missing image ends the task, not retried", async () => {
    const result = await runPlan("tasks: [{id: a, run: 'true', image: 'bulkhead/none:1'}]\n", [
      "--no-preflight",
    ]);
    expectCode(result, 3);
    expect(result.stdout).toContain("✗ a: the engine does not have the image bulkhead/none:1");
    // Nothing was started, so there is no log to send anybody to.
    expect(result.stdout).not.toContain("log:");
    expect(result.stdout).not.toContain("bulkhead logs");
    expect(taskOf(await statusOf(rig), "a")).toMatchObject({
      attempt: 1,
      failure: { reason: "image-missing", fault: "host" },
    });
  });

  test("overlay workspaces where they cannot be had are refused with the way out", async () => {
    // Mount options are separated by commas: such a path cannot be a layer.
    const own = createRig();
    const stateDir = join(own.root, "state,comma");
    const odd: Rig = { ...own, stateDir, env: { ...own.env, BULKHEAD_STATE_DIR: stateDir } };
    try {
      const env = { BULKHEAD_STATE_DIR: stateDir };
      writeFileSync(join(own.root, "plan.yaml"), plan);
      const forced = await own.run(["run", join(own.root, "plan.yaml"), "--workspace", "overlay"], {
        cwd: repository,
        env,
      });
      expectCode(forced, 3);
      expect(forced.stderr).toContain(
        `overlay workspaces cannot be had here: ${stateDir} has characters that mount options cannot carry`,
      );
      expect(forced.stderr).toContain("use --workspace copy, or auto");
      expect(forced.stdout).toBe("");
      const auto = expectCode(
        await own.run(["run", join(own.root, "plan.yaml"), "--json"], { cwd: repository, env }),
        0,
      );
      expect(JSON.parse(auto.stdout)).toMatchObject({
        state: "succeeded",
        warnings: [
          {
            task_id: "a",
            message: `workspaces are copied: ${stateDir} has characters that mount options cannot carry`,
          },
        ],
        tasks: [{ id: "a", driver: "copy" }],
      });
    } finally {
      await endRig(odd);
    }
  });

  test("caps: strict refuses to start where a cap is not enforced", async () => {
    const result = await runPlan(
      "tasks: [{id: a, run: 'echo ran', caps_mode: strict, caps: {memory: 64m, disk: 8m}}]\n",
      ["--workspace", "copy"],
    );
    expectCode(result, 3);
    expect(taskOf(await statusOf(rig), "a").failure).toMatchObject({
      reason: "caps-not-enforced",
      fault: "host",
    });
    expect(result.stdout).toContain("✗ a: refused to start: 1 cap is not enforced on this host");
    expect(result.stdout).toContain(
      "disk: asked for 8 MiB, not enforced (the workspace is a copy in a volume of the engine, which has no size limit)",
    );
    // Refused before its command ran, not after.
    expect(readEvents(rig).filter(({ event }) => event.type === "sandbox-started")).toEqual([]);
  });
});

describe("words that are not understood (exit code 2)", () => {
  test("an unknown run, also where there are none yet", async () => {
    expectCode(await runPlan(JSON.stringify({ defaults: SMALL, tasks: [{ id: "a", run: "true" }] })), 0);
    const { run_id: newest } = await statusOf(rig);
    for (const command of ["status", "logs", "diff", "undo", "apply", "cancel"]) {
      expectRefused(
        await rig.run([command, "nope"]),
        2,
        `error: there is no run "nope"\nhint: the newest is ${newest}; \`bulkhead status --all\` lists them\n`,
      );
    }
    const own = createRig();
    try {
      expectRefused(
        await own.run(["status"]),
        2,
        "error: there are no runs yet\nhint: start one with `bulkhead run PLAN`; another state directory is chosen with BULKHEAD_STATE_DIR\n",
      );
      expect(existsSync(own.stateDir)).toBe(false);
    } finally {
      await endRig(own);
    }
  });

  test("an unknown task of a known run, and a run that is over", async () => {
    const { run_id: run } = await statusOf(rig);
    for (const command of ["logs", "diff", "apply", "cancel"]) {
      const { code, stderr } = await rig.run([command, "latest", "A"]);
      expect(stderr).toMatch(new RegExp(`^error: run ${run} has no task "A"\nhint: `));
      expect(code).toBe(2);
    }
    expectRefused(
      await rig.run(["cancel", "latest"]),
      2,
      `error: run ${run} is not running: it is over\nhint: \`bulkhead status ${run}\` shows how it ended\n`,
    );
  });

  test.each([
    [["run"], "error: missing required argument 'plan'\n(add --help for usage and examples)\n"],
    [
      ["run", "plan.yaml", "--slot", "3"],
      "error: unknown option '--slot'\n(Did you mean --slots?)\n(add --help for usage and examples)\n",
    ],
    [
      ["stauts"],
      "error: unknown command 'stauts'\n(Did you mean status?)\n(add --help for usage and examples)\n",
    ],
    [["run", "plan.yaml", "--slots", "0"], 'error: --slots: "0" is not a whole number from 1 to 10000\n'],
    [
      ["run", "plan.yaml", "--workspace", "magic"],
      "error: option '--workspace <driver>' argument 'magic' is invalid. Allowed choices are auto, overlay, copy.\n(add --help for usage and examples)\n",
    ],
  ])("bulkhead %j", async (argv, stderr) => {
    expectRefused(await rig.run(argv, { cwd: repository }), 2, stderr);
  });

  test("--help and --version are answers, not errors", async () => {
    const help = await rig.run(["run", "--help"]);
    expect(help.code).toBe(0);
    expect(help.stdout).toContain(
      "Exit codes: 0 all done, 1 some task failed, 2 usage or plan, 3 machine, 130 interrupted",
    );
    expect(help.stderr).toBe("");
    const version = await rig.run(["--version"]);
    expect(version).toMatchObject({ code: 0, stderr: "" });
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
