import { describe, expect, test } from "vitest";
import type { TaskSpec } from "../../../src/model/task.ts";
import { parseConfig } from "../../../src/plan/load-config.ts";
import { parsePlan } from "../../../src/plan/parse-plan.ts";
import { formatProblem } from "../../../src/plan/plan-problem.ts";
import { DEFAULT_CONFIG, type ProjectConfig } from "../../../src/plan/project-config.ts";

function plan(value: unknown, config: ProjectConfig = DEFAULT_CONFIG): readonly TaskSpec[] {
  const parsed = parsePlan(value, { config });
  if (!parsed.ok) throw new Error(parsed.error.map(formatProblem).join("\n"));
  return parsed.value.tasks;
}

function config(value: unknown): ProjectConfig {
  const parsed = parseConfig(value);
  if (!parsed.ok) throw new Error(parsed.error.map(formatProblem).join("\n"));
  return parsed.value;
}

const AGENTS = {
  claude: { argv: ["claude", "-p"], env: { MODE: "agent" } },
  codex: { argv: ["codex"], prompt_by: "argument" },
};

describe("defaults", () => {
  test("a task that says the least gets everything filled in", () => {
    expect(plan({ id: "a", run: "make" })).toEqual([
      {
        id: "a",
        title: "a",
        command: { argv: ["/bin/sh", "-c", "make"], stdin: null, agent: null },
        prompt: null,
        priority: 100,
        dependsOn: [],
        timeoutMs: 1_800_000,
        retries: { max: 2, baseMs: 1000, factor: 1.5, maxDelayMs: 60_000, jitter: 0.5, on: [] },
        caps: {
          cpus: 1,
          memoryBytes: 1024 ** 3,
          swapBytes: 0,
          pids: 256,
          openFiles: 4096,
          diskBytes: null,
          tmpBytes: 256 * 1024 ** 2,
          ioReadBytesPerSecond: null,
          ioWriteBytesPerSecond: null,
          ioReadOpsPerSecond: null,
          ioWriteOpsPerSecond: null,
        },
        capsMode: "report",
        env: {},
        files: { include: [], exclude: [], tests: "all", keywords: [], history: 1, extra: [] },
        context: { files: [], acceptance: [], prohibited: [], notes: null },
        protect: [],
        verify: [],
        runtime: null,
        image: "bulkhead/agent:latest",
        source: "<plan>",
      },
    ]);
  });

  test("task over plan over project, field by field", () => {
    const project = config({
      agents: AGENTS,
      defaults: {
        timeout: "10m",
        image: "project:1",
        runtime: "runc",
        caps: { memory: "2g", pids: 100, disk: "1g", io: { read_bytes: "10m" } },
        retries: { max: 5, on: ["timeout"] },
        env: { A: "project", B: "project", C: "project", MODE: "project" },
        protect: ["/ci/"],
        verify: "make test",
        files: { exclude: ["docs/"], history: 0 },
        slots: 7,
      },
    });
    const [task] = plan(
      {
        defaults: {
          image: "plan:1",
          runtime: "crun",
          caps: { pids: 50 },
          env: { B: "plan", C: "plan" },
          protect: "go.mod",
        },
        agents: { claude: { argv: ["claude-next"], env: { MODE: "plan-agent" } } },
        tasks: [
          {
            id: "a",
            agent: "claude",
            prompt: "do it",
            caps: { cpus: "0.5", disk: "none", io: "none" },
            retries: 1,
            env: { C: "task", PORT: 8080, DEBUG: true, EMPTY: "" },
            protect: ["go.mod", "go.sum"],
            verify: [],
            files: { include: "src/" },
          },
        ],
      },
      project,
    );
    expect(project.slots).toBe(7);
    expect(task).toMatchObject({
      timeoutMs: 600_000,
      image: "plan:1",
      runtime: "crun",
      caps: { cpus: 0.5, memoryBytes: 2 * 1024 ** 3, pids: 50, diskBytes: null, ioReadBytesPerSecond: null },
      retries: { max: 1, on: ["timeout"], baseMs: 1000 },
      protect: ["/ci/", "go.mod", "go.sum"],
      verify: [],
      files: { include: ["src/"], exclude: ["docs/"], history: 0 },
      command: { argv: ["claude-next"], stdin: "do it", agent: "claude" },
    });
    expect(task?.env).toEqual({
      A: "project",
      B: "plan",
      C: "task",
      MODE: "plan-agent",
      PORT: "8080",
      DEBUG: "true",
      EMPTY: "",
    });
  });
});

describe("what is executed", () => {
  const project = config({ agents: AGENTS });
  const command = (fields: object, of = project) => plan({ id: "a", ...fields }, of)[0]?.command;

  test("run goes to the shell that was asked for, as one argument", () => {
    expect(command({ run: "a 'b'\n", shell: "bash" })).toEqual({
      argv: ["/bin/bash", "-c", "a 'b'\n"],
      stdin: null,
      agent: null,
    });
  });

  test("a prompt goes to standard input, or is the last argument", () => {
    const prompt = "-- Größe 日本 'quoted' $HOME\n";
    expect(command({ prompt, agent: "claude" })).toEqual({
      argv: ["claude", "-p"],
      stdin: prompt,
      agent: "claude",
    });
    expect(command({ prompt, agent: "codex" })).toEqual({
      argv: ["codex", prompt],
      stdin: null,
      agent: "codex",
    });
  });

  test("command words follow the agent's own; --task and --file are understood", () => {
    const [task] = plan(
      {
        id: "a",
        agent: "codex",
        command: ["--file=x.py", "--file", "y z.py", "--task", "Fix\nit", "--", "--file", "/not/an/option"],
      },
      project,
    );
    expect(task?.command.argv.slice(0, 3)).toEqual(["codex", "--file=x.py", "--file"]);
    expect(task).toMatchObject({ title: "Fix", prompt: "Fix\nit", context: { files: ["x.py", "y z.py"] } });
  });

  test("an option's value that looks like an option is its value", () => {
    const [task] = plan({ id: "a", agent: "codex", command: "--task --file --file b" }, project);
    expect(task).toMatchObject({ prompt: "--file", context: { files: ["b"] } });
  });

  test("the only agent there is needs no naming; a default agent neither", () => {
    expect(command({ prompt: "x" }, config({ agents: { only: { argv: ["only"] } } }))?.agent).toBe("only");
    expect(command({ prompt: "x" }, config({ agents: AGENTS, defaults: { agent: "claude" } }))?.agent).toBe(
      "claude",
    );
    expect(
      command({ run: "x" }, config({ agents: AGENTS, defaults: { agent: "claude" } }))?.agent,
    ).toBeNull();
  });

  test("a bare command where no agent is defined is given to the image's own", () => {
    expect(command({ command: "--task x" }, DEFAULT_CONFIG)).toEqual({
      argv: ["agent", "--task", "x"],
      stdin: null,
      agent: "agent",
    });
  });
});

test("task_id is id; one item stands for a list of it; what is named twice counts once", () => {
  const tasks = plan([
    { task_id: "b", run: "x", depends_on: "a", context: { acceptance: "it works" } },
    { id: "a", run: "x" },
    { id: "c", run: "x", depends_on: ["a", "b", "a"] },
  ]);
  expect(tasks.map(({ id, dependsOn, source }) => ({ id, dependsOn, source }))).toEqual([
    { id: "b", dependsOn: ["a"], source: "<plan>#1" },
    { id: "a", dependsOn: [], source: "<plan>#2" },
    { id: "c", dependsOn: ["a", "b"], source: "<plan>#3" },
  ]);
  expect(tasks[0]?.context.acceptance).toEqual(["it works"]);
});

test("a plan survives being logged as JSON", () => {
  const tasks = plan([
    { id: "a", run: "x" },
    { id: "b", run: "y", depends_on: ["a"] },
  ]);
  expect(JSON.parse(JSON.stringify(tasks))).toEqual(tasks);
});

test("reading costs the same for each task, however many there are", () => {
  const readsOf = (count: number): number => {
    let reads = 0;
    const counted = (id: string, dependsOn: string[]) =>
      new Proxy(
        { id, run: "true", depends_on: dependsOn },
        {
          get(target, key, receiver): unknown {
            reads += 1;
            return Reflect.get(target, key, receiver);
          },
        },
      );
    const tasks = Array.from({ length: count }, (_, index) =>
      counted(`t${index}`, index === 0 ? ["t1"] : index === 1 ? [] : ["t0"]),
    );
    expect(plan(tasks)).toHaveLength(count);
    return reads;
  };
  const small = readsOf(500);
  expect(small).toBeGreaterThan(500);
  expect(readsOf(5000)).toBe(small * 10);
});
