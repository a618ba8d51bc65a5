import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../src/plan/load-config.ts";
import { parsePlan } from "../../../src/plan/parse-plan.ts";
import { formatProblem } from "../../../src/plan/plan-problem.ts";
import { DEFAULT_CONFIG } from "../../../src/plan/project-config.ts";

const CONFIG = {
  ...DEFAULT_CONFIG,
  agents: new Map([
    ["claude", { argv: ["claude", "-p"], promptBy: "stdin" as const, env: {} }],
    ["codex", { argv: ["codex", "exec"], promptBy: "argument" as const, env: {} }],
  ]),
};

/** The sentences about a plan, as a person reads them. */
function complaints(value: unknown): readonly string[] {
  const plan = parsePlan(value, { config: CONFIG, hostCpus: 4, source: "plan.yaml" });
  return plan.ok ? [] : plan.error.map(formatProblem);
}

/** The sentences about one task `a` with these fields, without the place. */
function about(fields: object): readonly string[] {
  return complaints({ id: "a", ...fields }).map((text) => text.replace('plan.yaml: task "a": ', ""));
}

const ID =
  "1 to 64 of A-Z a-z 0-9 _ - . , starting with a letter or digit, without .., not ending in . or .lock";
const REASONS = "exit, timeout, oom, pids, disk-full, agent-error or result-refused";

describe("one wrong field", () => {
  test.each<[object, string]>([
    [{ caps: { memory: "12 elephants" } }, 'caps.memory: "12 elephants" is not a size; use e.g. 512m, 2GiB'],
    [{ caps: { memory: "1k" } }, 'caps.memory: "1k" is less than 6 MiB; use e.g. 512m, 2GiB'],
    [{ caps: { memory: true } }, "caps.memory: true is not a size; use e.g. 512m, 2GiB"],
    [{ caps: { disk: "all" } }, 'caps.disk: "all" is not a size; use e.g. 512m, 2GiB, or none'],
    [
      { caps: { pids: 1.5 } },
      "caps.pids: 1.5 is not a fitting number; use a whole number from 2 to 4,194,304",
    ],
    [{ caps: { cpus: 0 } }, "caps.cpus: 0 is not a number of cores; use e.g. 0.5 or 2 (at least 0.01)"],
    [{ caps: { cpus: 8 } }, "caps.cpus: 8 is more than this machine has; use at most 4"],
    [{ caps: 5 }, "caps: 5 is not a map of caps; use e.g. {cpus: 2, memory: 2GiB}"],
    [
      { caps: { io: { read_bytes: "fast" } } },
      'caps.io.read_bytes: "fast" is not a size; use e.g. 512m, 2GiB, or none',
    ],
    [
      { caps: { io: "some" } },
      'caps.io: "some" is not a map of disk rates; use read_bytes, write_bytes, read_ops, write_ops, or none',
    ],
    [{ caps_mode: "lax" }, 'caps_mode: "lax" is not a caps mode; use report or strict'],
    [{ timeout: "soon" }, 'timeout: "soon" is not a time; use e.g. 90s, 30m, 1h30m, or a number of seconds'],
    [{ timeout: "9d" }, 'timeout: "9d" is more than 7d; use e.g. 90s, 30m, 1h30m, or a number of seconds'],
    [{ timeout: 0 }, "timeout: 0 is less than 1s; use e.g. 90s, 30m, 1h30m, or a number of seconds"],
    [
      { priority: "high" },
      'priority: "high" is not a fitting number; use a whole number from -1,000,000 to 1,000,000',
    ],
    [{ retries: { max: 200 } }, "retries.max: 200 is not a fitting number; use a whole number from 0 to 100"],
    [{ retries: { jitter: 2 } }, "retries.jitter: 2 is not a fitting number; use a number from 0 to 1"],
    [
      { retries: { on: ["exit", "rain"] } },
      `retries.on.1: "rain" is not a failure that can be retried; use ${REASONS}`,
    ],
    [
      { retries: "often" },
      'retries: "often" is not a retry policy; use a number of retries from 0 to 100, or a map with max, base, factor, max_delay, jitter, on',
    ],
    [
      { env: { "A B": "x" } },
      'env."A B": "A B" is not a variable name; use A-Z a-z 0-9 _, not starting with a digit or BULKHEAD_',
    ],
    [
      { env: { BULKHEAD_X: "x" } },
      'env.BULKHEAD_X: "BULKHEAD_X" is not a variable name; use A-Z a-z 0-9 _, not starting with a digit or BULKHEAD_',
    ],
    [
      { env: { TOKEN: null } },
      'env.TOKEN: nothing is not the value of a variable; use text, a number, true or false ("" for empty)',
    ],
    [{ env: ["A=1"] }, "env: a list is not a map of variables; use NAME: value"],
    [
      { files: { include: ["../x"] } },
      'files.include.0: "../x" is not a pattern; use gitignore syntax relative to the repository root, without ..',
    ],
    [{ files: { tests: "some" } }, 'files.tests: "some" is not a choice of tests; use all or matching'],
    [
      { files: { tests: "matching" } },
      "files.keywords: is missing, and files.tests is matching; use words that occur in the paths of the tests, e.g. [auth, login]",
    ],
    [
      { context: { files: ["/etc/passwd"] } },
      'context.files.0: "/etc/passwd" is not a path in the repository; use a path relative to its root, without ..',
    ],
    [{ verify: [7] }, "verify.0: 7 is not a shell command; use 1 to 131,071 characters; quotes make it text"],
    [
      { image: "-v /:/host" },
      'image: "-v /:/host" is not an image name; use e.g. debian:13 or registry.example/team/agent@sha256:…',
    ],
    [{ title: "x".repeat(201) }, `title: "${"x".repeat(60)}…" is not text; use 1 to 200 characters`],
    [{ depends_on: [3] }, `depends_on.0: 3 is not a task id; use ${ID}; quotes make it text`],
    [{ shell: "zsh" }, 'shell: "zsh" is not a shell; use sh or bash'],
    [{ protect: { a: 1 } }, "protect: a map is not a list of patterns; use a list of at most 10,000"],
  ])("%j", (fields, expected) => {
    expect(about({ run: "true", ...fields })).toEqual([expected]);
  });

  test.each<[unknown, string]>([
    ["../x", '"../x"'],
    ["a/b", '"a/b"'],
    ["a..b", '"a..b"'],
    ["a.lock", '"a.lock"'],
    ["-a", '"-a"'],
    ["größe", '"größe"'],
    ["", '""'],
    ["x".repeat(65), `"${"x".repeat(60)}…"`],
  ])("the id %j", (id, shown) => {
    expect(complaints({ id, run: "true" })).toEqual([
      `plan.yaml: task ${shown}: id: ${shown} is not a task id; use ${ID}`,
    ]);
  });
});

describe("unknown fields", () => {
  test.each<[object, string]>([
    [{ depend_on: ["b"] }, "depend_on: unknown field; did you mean depends_on?"],
    [{ dependsOn: ["b"] }, "dependsOn: unknown field; did you mean depends_on?"],
    [{ memory: "1g" }, "memory: unknown field; did you mean caps.memory?"],
    [{ caps: { memroy: "1g" } }, "caps.memroy: unknown field; did you mean memory?"],
    [
      { retries: { maximum: 1 } },
      "retries.maximum: unknown field; use one of max, base, factor, max_delay, jitter or on",
    ],
    [
      { caps: { io: { x: 1 } } },
      "caps.io.x: unknown field; use one of read_bytes, write_bytes, read_ops or write_ops",
    ],
  ])("%j", (fields, expected) => {
    expect(about({ run: "true", ...fields })).toEqual([expected]);
  });

  test("one that is like none lists what there is and where it may belong", () => {
    expect(about({ run: "true", "<<": {} })).toEqual([
      '"<<": unknown field; use one of id, task_id, title, run, shell, command, prompt, agent, image, runtime, priority, depends_on, timeout, retries, ' +
        "caps, caps_mode, env, files, context, protect or verify; merge keys are not part of YAML 1.2; put what tasks share under defaults",
    ]);
  });

  test("a key that would change the prototype is a field like any other", () => {
    const task: unknown = JSON.parse('{"id": "a", "run": "true", "__proto__": {"x": 1}}');
    expect(complaints(task)).toEqual([expect.stringContaining("__proto__: unknown field")]);
  });
});

describe("what to do", () => {
  test.each<[object, string]>([
    [
      {},
      "says nothing to do; use run (a shell script), prompt (for an agent) or command (arguments of an agent)",
    ],
    [
      { agent: "claude" },
      "says nothing to do; use run (a shell script), prompt (for an agent) or command (arguments of an agent)",
    ],
    [
      { run: "x", prompt: "y" },
      "prompt: is given together with run; use exactly one of run, command, prompt",
    ],
    [
      { command: "x", prompt: "y" },
      "prompt: is given together with command; use exactly one of run, command, prompt",
    ],
    [
      { run: "x", agent: "claude" },
      "agent: is given together with run, which needs no agent; use run alone, or agent with prompt or command",
    ],
    [{ prompt: "x", agent: "claude", shell: "sh" }, "shell: is given without run; use shell with run only"],
    [
      { prompt: "x", agent: "claud" },
      'agent: "claud" is not a defined agent; use claude or codex; did you mean claude?',
    ],
    [{ prompt: "x", agent: "other" }, 'agent: "other" is not a defined agent; use claude or codex'],
    [{ prompt: "x" }, "agent: is missing, and there is no default; use claude or codex"],
    [{ run: "" }, 'run: "" is not a shell script; use 1 to 131,071 characters'],
    [{ run: "a\0b" }, 'run: "a\\u0000b" is not a shell script; use 1 to 131,071 characters'],
    [
      { run: "ä".repeat(100_000) },
      "run: 200,000 bytes do not fit into one argument; use at most 131,071 bytes, or a script file of the repository",
    ],
    [
      { prompt: "x".repeat(140_000), agent: "codex" },
      "prompt: 140,000 bytes do not fit into one argument; use at most 131,071 bytes, or a script file of the repository",
    ],
    [
      { command: "a 'b", agent: "claude" },
      "command: \"a 'b\" has a ' at character 3 that is not closed; use a pair of quotes",
    ],
    [{ command: "a \\", agent: "claude" }, 'command: "a \\\\" ends in a backslash; use \\\\ for a backslash'],
    [
      { command: "npm test && npm run lint", agent: "claude" },
      'command: "npm test && npm run lint" has a bare & at character 10, and no shell reads it; use quotes around it, or run for a shell command',
    ],
    [{ command: "--task", agent: "claude" }, "command: --task has no value; use --task VALUE"],
    [
      { command: "--file ../../etc/passwd", agent: "claude" },
      'command: --file "../../etc/passwd" is not a path in the repository; use a path relative to its root, without ..',
    ],
    [{ task_id: "b", run: "x" }, "task_id: is another name for id, and both are given; use id alone"],
  ])("%j", (fields, expected) => {
    expect(about(fields)).toEqual([expected]);
  });

  test("a prompt where no agent is defined at all", () => {
    const plan = parsePlan({ id: "a", prompt: "x" }, { config: DEFAULT_CONFIG });
    expect(plan.ok ? [] : plan.error.map(formatProblem)).toEqual([
      '<plan>: task "a": agent: is missing, and no agent is defined; use agents: {NAME: {argv: [...]}} in bulkhead.yaml or the plan',
    ]);
  });
});

describe("the graph", () => {
  const task = (id: string, ...dependsOn: string[]) => ({ id, run: "true", depends_on: dependsOn });

  test("a cycle is printed as its path", () => {
    expect(complaints([task("a", "b"), task("b", "c"), task("c", "a"), task("d", "a")])).toEqual([
      'plan.yaml: task "a": depends_on: cycle: a -> b -> c -> a',
    ]);
  });

  test("a task that waits for itself, and one that waits for nobody known", () => {
    expect(complaints([task("build", "build"), task("test", "biuld"), task("x", "nothing-like-it")])).toEqual(
      [
        'plan.yaml: task "build": depends_on: a task cannot wait for itself',
        'plan.yaml: task "test": depends_on: "biuld" is not a task of this plan; did you mean build?',
        'plan.yaml: task "x": depends_on: "nothing-like-it" is not a task of this plan',
      ],
    );
  });

  test("an id that is given twice names both places", () => {
    expect(complaints([task("a"), task("b"), task("a")])).toEqual([
      'plan.yaml: task "a": id: "a" is the id of another task already, in plan.yaml#1; use another id',
    ]);
  });

  test("a task that is wrong in itself is still known to those that wait for it", () => {
    expect(complaints([{ ...task("a"), priority: "x" }, task("b", "a")])).toEqual([
      'plan.yaml: task "a": priority: "x" is not a fitting number; use a whole number from -1,000,000 to 1,000,000',
    ]);
  });
});

describe("the whole", () => {
  test.each<[unknown, string[]]>([
    [5, ["plan.yaml: 5 is not a task; use a map with id and one of run, command or prompt"]],
    [null, ["plan.yaml: nothing is not a task; use a map with id and one of run, command or prompt"]],
    [[], ["plan.yaml: holds no task"]],
    [{ tasks: [] }, ["plan.yaml: tasks: holds no task"]],
    [
      { tasks: { a: { run: "x" } } },
      [
        "plan.yaml: tasks: a map is not a list of tasks; use a list, each with an id and one of run, command or prompt",
      ],
    ],
    [
      { defaults: { timeout: "1m" } },
      ["plan.yaml: tasks: is missing; use a list, each with an id and one of run, command or prompt"],
    ],
    [{ tasks: [{ run: "x" }] }, ["plan.yaml: tasks.0.id: is missing; use a name, e.g. id: auth"]],
    [
      { tasks: [{ id: "a", run: "x" }], defaults: { slots: 2 } },
      [
        "plan.yaml: defaults.slots: unknown field; use one of agent, image, runtime, timeout, retries, caps, caps_mode, env, files, protect or verify; " +
          "slots goes under defaults of bulkhead.yaml",
      ],
    ],
  ])("%j", (value, expected) => {
    expect(complaints(value)).toEqual(expected);
  });

  test("every problem of every task is told, not only the first", () => {
    const plan = [
      { id: "a", rnu: "x", timeout: "soon", caps: { pids: 0, memory: "x" } },
      { id: "b", run: "x", depends_on: ["nowhere"] },
    ];
    expect(complaints(plan).map((text) => text.split(": ").slice(1, 3).join(" "))).toEqual([
      'task "a" timeout',
      'task "a" caps.memory',
      'task "a" caps.pids',
      'task "a" rnu',
      'task "a" says nothing to do; use run (a shell script), prompt (for an agent) or command (arguments of an agent)',
      'task "b" depends_on',
    ]);
  });

  test("more tasks than a run may have", () => {
    const tasks = Array.from({ length: 100_001 }, () => ({}));
    expect(complaints(tasks)).toEqual([
      "plan.yaml: 100,001 tasks are more than one plan may have; use at most 100,000",
    ]);
  });

  test("escape sequences of a hostile value do not reach the terminal", () => {
    expect(about({ run: "x", priority: "\u001b[2J\u202e\u009b1m" }).join()).toMatch(
      /^priority: "\\u001b\[2J[^\u0080-\u009f\u202e]*" is not/,
    );
  });

  test("what a variable is set to is in no message and no problem", () => {
    const plan = parsePlan(
      { id: "a", run: "x", env: { KEY: { secret: "hunter2" }, "B C": "hunter2" } },
      { config: CONFIG },
    );
    expect(plan.ok).toBe(false);
    expect(JSON.stringify(plan)).not.toContain("hunter2");
  });
});

describe("the configuration", () => {
  test.each<[unknown, string]>([
    [{ default: {} }, "bulkhead.yaml: default: unknown field; did you mean defaults?"],
    [{ slots: 3 }, "bulkhead.yaml: slots: unknown field; did you mean defaults.slots?"],
    [{ gateway: {} }, "bulkhead.yaml: gateway: unknown field; use one of defaults, agents or secrets"],
    [{ egress: [] }, "bulkhead.yaml: egress: unknown field; use one of defaults, agents or secrets"],
    [
      { defaults: { slots: 0 } },
      "bulkhead.yaml: defaults.slots: 0 is not a fitting number; use a whole number from 1 to 10,000",
    ],
    [
      { defaults: { agent: "x" } },
      'bulkhead.yaml: defaults.agent: "x" is not a defined agent; use an agent defined under agents',
    ],
    [
      { agents: { x: {} } },
      "bulkhead.yaml: agents.x.argv: is missing; use a list of words, e.g. [my-agent, --headless]",
    ],
    [
      { agents: { x: { argv: "my-agent" } } },
      'bulkhead.yaml: agents.x.argv: "my-agent" is not a command line; use a list of words, e.g. [my-agent, --headless]',
    ],
    [
      { agents: { x: { argv: ["a"], prompt_by: "mail" } } },
      'bulkhead.yaml: agents.x.prompt_by: "mail" is not a way to give the prompt; use stdin or argument',
    ],
    [
      { agents: { "9x": { argv: ["a"] } } },
      'bulkhead.yaml: agents.9x: "9x" is not an agent name; use 1 to 64 of A-Z a-z 0-9 _ - , starting with a letter',
    ],
    [
      { secrets: ["A=B"] },
      'bulkhead.yaml: secrets.0: "A=B" is not a variable name; use A-Z a-z 0-9 _, not starting with a digit or BULKHEAD_',
    ],
    [[], "bulkhead.yaml: a list is not a configuration; use a map with defaults, agents, secrets"],
  ])("%j", (value, expected) => {
    const config = parseConfig(value, "bulkhead.yaml");
    expect(config.ok ? [] : config.error.map(formatProblem)).toEqual([expected]);
  });
});
