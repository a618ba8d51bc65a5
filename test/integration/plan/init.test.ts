import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Command } from "commander";
import { afterEach, beforeEach, expect, test } from "vitest";
import { registerInit } from "../../../src/cli/commands/init.ts";
import { RunnerError } from "../../../src/model/runner-error.ts";
import { generateSchemas } from "../../../src/plan/json-schema.ts";
import { loadConfig } from "../../../src/plan/load-config.ts";
import { createPlanRig, type PlanRig } from "./plan-rig.ts";

let rig: PlanRig;
beforeEach(() => {
  rig = createPlanRig();
});
afterEach(() => rig.dispose());

async function init(...args: string[]): Promise<string> {
  const stdout = new PassThrough();
  const program = new Command().exitOverride();
  const stderr = new PassThrough();
  const context = {
    cwd: rig.root,
    env: {},
    stateDir: rig.root,
    cacheDir: rig.root,
    stdout,
    stderr,
    stdin: new PassThrough(),
  };
  registerInit(program, context);
  await program.parseAsync(["init", ...args], { from: "user" });
  return String(stdout.read() ?? "");
}

async function refusal(...args: string[]): Promise<RunnerError> {
  const error: unknown = await init(...args).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof RunnerError)) throw new Error(`not refused as expected: ${String(error)}`);
  return error;
}

const FILES = [
  "bulkhead.yaml",
  "tasks/count-files.yaml",
  "tasks/list-notes.yaml",
  "tasks/write-report.yaml",
  "tasks/.schema/task.schema.json",
  "tasks/.schema/plan.schema.json",
  "tasks/.schema/config.schema.json",
];

test("what it writes is a valid configuration and a valid plan", async () => {
  const output = await init();
  expect(output).toContain("wrote tasks/write-report.yaml\n");
  expect(output).toContain("bulkhead run tasks/");
  expect(output).toContain("not the top of a git repository");

  const config = await loadConfig(rig.root);
  if (!config.ok) throw new Error("the template was refused");
  expect(config.value.defaults).toMatchObject({
    timeoutMs: 600_000,
    protect: expect.arrayContaining([".github/"]),
  });
  const { tasks } = await rig.load(["tasks"], { config: config.value });
  expect(tasks.map(({ id, dependsOn }) => [id, dependsOn])).toEqual([
    ["count-files", []],
    ["list-notes", []],
    ["write-report", ["count-files", "list-notes"]],
  ]);
});

test("the example's commands work in a repository, also in one without notes or endings", async () => {
  await init();
  const { tasks } = await rig.load(["tasks"]);
  for (const [name, text] of [
    ["größe.py", "# TODO: one"],
    ["plain", "nothing"],
  ] as const) {
    const repository = join(rig.root, `repository-${name}`);
    mkdirSync(repository);
    writeFileSync(join(repository, name), `${text}\n`);
    const git = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-C", repository];
    execFileSync("git", [...git, "init", "-q"]);
    execFileSync("git", [...git, "add", "."]);
    execFileSync("git", [...git, "commit", "-q", "-m", "first"]);
    for (const { command, verify } of tasks) {
      const [program = "", ...args] = command.argv;
      execFileSync(program, args, { cwd: repository });
      for (const check of verify) execFileSync("/bin/sh", ["-c", check], { cwd: repository });
    }
    const report = readFileSync(join(repository, "reports/REPORT.md"), "utf8");
    expect(report).toContain("## Open notes");
    expect(report.includes("1 py")).toBe(name === "größe.py");
    expect(report.includes("TODO: one")).toBe(name === "größe.py");
  }
});

test("each template names a schema that lies where it says", async () => {
  await init("new/project");
  const root = join(rig.root, "new/project");
  for (const path of FILES.filter((file) => file.endsWith(".yaml"))) {
    const [, reference] =
      /^# yaml-language-server: \$schema=(\S+)$/m.exec(readFileSync(join(root, path), "utf8")) ?? [];
    const schema = readFileSync(join(root, path, "..", reference ?? "none"), "utf8");
    expect(Object.values(generateSchemas())).toContain(schema);
  }
});

test("nothing is overwritten, and nothing is written half", async () => {
  writeFileSync(join(rig.root, "bulkhead.yaml"), "# mine\n");
  const error = await refusal();
  expect(error.code).toBe("usage");
  expect(error.data["existing"]).toEqual(["bulkhead.yaml"]);
  expect(readdirSync(rig.root)).toEqual(["bulkhead.yaml"]);
  expect(readFileSync(join(rig.root, "bulkhead.yaml"), "utf8")).toBe("# mine\n");
});

test("at the top of a repository there is nothing to note", async () => {
  execFileSync("git", ["init", "-q", rig.root]);
  expect(await init()).not.toContain("Note:");
});

test("--force replaces, --json tells", async () => {
  expect(JSON.parse(await init("--json"))).toEqual({ directory: rig.root, created: FILES, replaced: [] });
  writeFileSync(join(rig.root, "bulkhead.yaml"), "# mine\n");
  expect(JSON.parse(await init("--force", "--json"))).toEqual({
    directory: rig.root,
    created: [],
    replaced: FILES,
  });
  expect(readFileSync(join(rig.root, "bulkhead.yaml"), "utf8")).toContain("defaults:");
});

test("nothing is written through a link", async () => {
  const outside = join(rig.root, "outside");
  const inside = join(rig.root, "inside");
  mkdirSync(outside);
  mkdirSync(inside);
  symlinkSync(outside, join(inside, "tasks"));
  expect((await refusal("inside", "--force")).message).toBe(`${inside}/tasks is not a folder`);
  expect(readdirSync(outside)).toEqual([]);

  writeFileSync(join(outside, "victim"), "untouched");
  const other = join(rig.root, "other");
  mkdirSync(other);
  symlinkSync(join(outside, "victim"), join(other, "bulkhead.yaml"));
  await init("other", "--force");
  expect(readFileSync(join(outside, "victim"), "utf8")).toBe("untouched");
});
