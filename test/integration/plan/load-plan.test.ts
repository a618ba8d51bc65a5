import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, truncateSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { parseConfig } from "../../../src/plan/load-config.ts";
import { createPlanRig, type PlanRig } from "./plan-rig.ts";

let rig: PlanRig;
beforeEach(() => {
  rig = createPlanRig();
});
afterEach(() => rig.dispose());

/** The classic example, as its authors wrote it (row A15). */
const CLASSIC = {
  auth_refactor: {
    id: "auth_refactor",
    command: "--file src/auth.py --task 'Refactor the auth module'",
    priority: 1,
    depends_on: [],
  },
  test_auth: {
    id: "test_auth",
    command: "--file tests/test_auth.py --task 'Write tests for the auth module'",
    priority: 2,
    depends_on: ["auth_refactor"],
  },
  docs_update: {
    id: "docs_update",
    command: "--file docs/auth.md --task 'Update the documentation'",
    priority: 3,
    depends_on: ["auth_refactor", "test_auth"],
  },
};

describe("the three classic files", () => {
  const expected = [
    {
      id: "auth_refactor",
      priority: 1,
      dependsOn: [],
      title: "Refactor the auth module",
      context: { files: ["src/auth.py"] },
      source: "tasks/auth_refactor.json",
    },
    {
      id: "docs_update",
      priority: 3,
      dependsOn: ["auth_refactor", "test_auth"],
      prompt: "Update the documentation",
      source: "tasks/docs_update.json",
    },
    {
      id: "test_auth",
      priority: 2,
      dependsOn: ["auth_refactor"],
      context: { files: ["tests/test_auth.py"] },
      source: "tasks/test_auth.json",
    },
  ];
  beforeEach(() => {
    for (const [id, task] of Object.entries(CLASSIC))
      rig.write(`tasks/${id}.json`, JSON.stringify(task, null, 2));
  });

  test("load unchanged from their folder, without any configuration", async () => {
    const { tasks, sources } = await rig.load(["tasks/"]);
    expect(tasks).toMatchObject(expected);
    expect(tasks[0]?.command.argv).toEqual([
      "agent",
      "--file",
      "src/auth.py",
      "--task",
      "Refactor the auth module",
    ]);
    expect(sources).toEqual(["tasks/auth_refactor.json", "tasks/docs_update.json", "tasks/test_auth.json"]);
  });

  test("go to the agent that is configured, named one by one, with task_id for id", async () => {
    rig.write(
      "tasks/auth_refactor.json",
      JSON.stringify({ ...CLASSIC.auth_refactor, id: undefined, task_id: "auth_refactor" }),
    );
    const config = parseConfig({ agents: { py: { argv: ["python3", "agent.py"] } } });
    if (!config.ok) throw new Error("config refused");
    const { tasks } = await rig.load(
      ["tasks/test_auth.json", "tasks/auth_refactor.json", "tasks/docs_update.json"],
      { config: config.value },
    );
    expect(tasks.map(({ id }) => id)).toEqual(["test_auth", "auth_refactor", "docs_update"]);
    expect(tasks[1]?.command).toEqual({
      argv: ["python3", "agent.py", "--file", "src/auth.py", "--task", "Refactor the auth module"],
      stdin: null,
      agent: "py",
    });
  });
});

test("the same tasks as JSON folder, YAML folder, list, plan, documents and standard input are the same plan", async () => {
  const tasks = [
    {
      id: "a",
      run: "echo 'x: y'\nexit 0\n",
      caps: { memory: "512m", cpus: 0.5 },
      env: { A: "1", B: "yes" },
      timeout: "90s",
    },
    {
      id: "b",
      prompt: "größer — 日本 🚀\n",
      agent: "z",
      depends_on: ["a"],
      retries: { max: 0, on: ["exit"] },
      priority: -3,
    },
  ];
  const agents = { z: { argv: ["z"] } };
  const config = parseConfig({ agents });
  if (!config.ok) throw new Error("config refused");
  for (const task of tasks) {
    rig.write(`json/${task.id}.json`, JSON.stringify(task));
    rig.write(`yaml/${task.id}.yaml`, stringify(task));
  }
  rig.write("list.json", JSON.stringify(tasks, null, 2));
  rig.write("list.yml", stringify(tasks));
  rig.write("plan.json", JSON.stringify({ tasks, agents }));
  rig.write("plan.yaml", stringify({ tasks, agents }));
  rig.write("documents.yaml", tasks.map((task) => stringify(task)).join("---\n"));
  rig.write("no-extension", `\ufeff${JSON.stringify(tasks)}`);
  const lines = tasks.map((task) => JSON.stringify(task)).join("\n");

  const plans = await Promise.all([
    ...["json", "yaml", "list.json", "list.yml", "documents.yaml", "no-extension"].map((input) =>
      rig.load([input], { config: config.value }),
    ),
    rig.load(["plan.json"]),
    rig.load([join(rig.root, "plan.yaml")]),
    rig.load(["-"], { config: config.value, stdin: JSON.stringify(tasks) }),
    rig.load(["-"], { config: config.value, stdin: stringify(tasks) }),
    rig.load(["-"], { config: config.value, stdin: lines }),
    rig.load(["json/a.json", "-"], { config: config.value, stdin: JSON.stringify(tasks[1]) }),
  ]);
  const [first, ...others] = plans.map(({ tasks: loaded }) =>
    loaded.map((task) => ({ ...task, source: "" })),
  );
  expect(first?.[1]?.command.stdin).toBe("größer — 日本 🚀\n");
  for (const other of others) expect(other).toEqual(first);
});

test("a folder gives its task files by name, and nothing else of it", async () => {
  rig.write("tasks/b.yaml", "id: b\nrun: x");
  rig.write("tasks/a.yml", "id: a\nrun: x");
  rig.write("tasks/größe 日.json", '{"id": "c", "run": "x"}');
  rig.write("tasks/.hidden.yaml", "not: a task");
  rig.write("tasks/bulkhead.yaml", "defaults: {}");
  rig.write("tasks/README.md", "# no task");
  rig.write("tasks/deeper/d.yaml", "id: d\nrun: x");
  rig.write("tasks/folder.yaml/e.yaml", "id: e\nrun: x");
  const { tasks, sources } = await rig.load(["./tasks"]);
  expect(tasks.map(({ id }) => id)).toEqual(["a", "b", "c"]);
  expect(sources).toEqual(["tasks/a.yml", "tasks/b.yaml", "tasks/größe 日.json"]);
});

test("a file that is named twice is read once; an id in two files names both", async () => {
  rig.write("tasks/a.yaml", "id: a\nrun: x");
  expect((await rig.load(["tasks", "tasks/a.yaml"])).tasks).toHaveLength(1);
  rig.write("tasks/b.json", '{\n  "run": "x",\n  "id": "a"\n}');
  expect(await rig.refuse(["tasks"])).toEqual([
    'tasks/b.json:3: task "a": id: "a" is the id of another task already, in tasks/a.yaml:1; use another id',
  ]);
});

test("all problems of all files, by file and line", async () => {
  rig.write("t/1.yaml", "# a comment\nid: auth\nrun: make\ncaps:\n  memory: 12 elephants\ndepend_on: [x]\n");
  rig.write(
    "t/2.json",
    '[\n  {"id": "b", "run": "x"},\n  {"id": "c", "run": "x",\n   "priority": "high"},\n  {"run": "x"}\n]',
  );
  rig.write("t/3.yaml", "id: d\nrun: [x\n");
  rig.write("t/4.yaml", "id: e\nrun: x\n---\nid: f\nrun: x\ntimeout: soon\ndepends_on: [d]\n");
  expect(await rig.refuse(["t"])).toEqual([
    't/1.yaml:5: task "auth": caps.memory: "12 elephants" is not a size; use e.g. 512m, 2GiB',
    't/1.yaml:6: task "auth": depend_on: unknown field; did you mean depends_on?',
    't/2.json:4: task "c": priority: "high" is not a fitting number; use a whole number from -1,000,000 to 1,000,000',
    "t/2.json:5: 2.id: is missing; use a name, e.g. id: auth",
    expect.stringMatching(/^t\/3\.yaml:3: not valid YAML at column 1: /),
    // That e waits for d is no problem of its own: d is in the file that could not be read.
    't/4.yaml:6: task "f": timeout: "soon" is not a time; use e.g. 90s, 30m, 1h30m, or a number of seconds',
  ]);
});

test("a cycle over several files", async () => {
  rig.write("t/a.yaml", "id: a\nrun: x\ndepends_on: [b]\n");
  rig.write("t/b.yaml", "id: b\nrun: x\ndepends_on:\n  - c\n");
  rig.write("t/c.yaml", "id: c\nrun: x\ndepends_on: a\n");
  expect(await rig.refuse(["t"])).toEqual(['t/a.yaml:3: task "a": depends_on: cycle: a -> b -> c -> a']);
});

describe("inputs that are no plan", () => {
  test("missing, empty, not text, of another kind, too large", async () => {
    rig.write("target.yaml", "id: a\nrun: x");
    symlinkSync("target.yaml", join(rig.root, "link.yaml"));
    mkdirSync(join(rig.root, "empty"));
    rig.write("bytes.yaml", Uint8Array.of(0xff, 0xfe, 0x00));
    rig.write("nothing.json", "");
    rig.write("large.json", "");
    truncateSync(join(rig.root, "large.json"), 16 * 1024 ** 2 + 1);
    execFileSync("mkfifo", [join(rig.root, "fifo.yaml")]);
    const inputs = [
      "missing.yaml",
      "target.yaml/x",
      "link.yaml",
      "empty",
      "bytes.yaml",
      "nothing.json",
      "large.json",
      "fifo.yaml",
      "-",
    ];
    expect(new Set(await rig.refuse(inputs))).toEqual(
      new Set([
        "missing.yaml: there is no such file or folder",
        "target.yaml/x: there is no such file or folder",
        "link.yaml: is a symbolic link; name the file or folder it points to",
        "empty: the folder holds no *.json, *.yaml or *.yml",
        "bytes.yaml: is not UTF-8 text",
        "nothing.json: is empty; a task needs at least id and run",
        "large.json: is 16 MiB; use at most 16 MiB a file; split it",
        "fifo.yaml: is not a regular file; pipe it in and name it -",
        "<stdin>: there is no standard input to read",
      ]),
    );
  });

  test("links, fifos and sockets in a folder are neither followed nor waited for", async () => {
    rig.write("t/a.yaml", "id: a\nrun: x");
    symlinkSync("/etc/passwd", join(rig.root, "t/b.yaml"));
    symlinkSync("nowhere", join(rig.root, "t/c.yaml"));
    execFileSync("mkfifo", [join(rig.root, "t/d.yaml")]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(rig.root, "t/e.yaml"), resolve));
    try {
      expect(await rig.refuse(["t"])).toEqual([
        "t/b.yaml: is a symbolic link; name the file or folder it points to",
        "t/c.yaml: is a symbolic link; name the file or folder it points to",
        "t/d.yaml: is not a regular file; pipe it in and name it -",
        "t/e.yaml: is not a regular file; pipe it in and name it -",
      ]);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test("nothing named, standard input named twice, standard input without end", async () => {
    expect(await rig.refuse([])).toEqual(["<plan>: no file, folder or - was named; give at least one"]);
    expect(await rig.refuse(["-", "-"], { stdin: "id: a\nrun: x" })).toEqual(["<stdin>: is named twice"]);
    expect(await rig.refuse(["-"], { stdin: Buffer.alloc(16 * 1024 ** 2 + 1, "#") })).toEqual([
      "<stdin>: is more than 16 MiB; use at most 16 MiB a file; split it",
    ]);
  });

  test("a hostile file name is shown, not obeyed", async () => {
    rig.write("t/\u001b[2J\n.yaml", "nonsense: 1");
    expect((await rig.refuse(["t"]))[0]).toMatch(/^"t\/\\x1b\[2J\\x0a\.yaml":1: /);
  });
});

test("five thousand tasks in a folder, each waiting for two others", async () => {
  for (let index = 0; index < 5000; index += 1) {
    const dependsOn = [...new Set([index - 1, index >> 1])].filter((other) => other >= 0 && other < index);
    rig.write(
      `t/${index}.yaml`,
      stringify({ id: `t${index}`, run: "true", depends_on: dependsOn.map((other) => `t${other}`) }),
    );
  }
  const { tasks } = await rig.load(["t"]);
  expect(tasks).toHaveLength(5000);
  expect(tasks.find(({ id }) => id === "t4999")?.dependsOn).toEqual(["t4998", "t2499"]);
});
