/** Changes that do something by themselves: told in the report, shown first, and taken over only where a person named the rule (row A19). */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CliResult, createRepository, createRig, git, type Rig } from "../support/bulkhead-cli.ts";
import { endRig, expectCode, SMALL, statusOf, taskOf, writePlan } from "../support/e2e-rig.ts";

const MANIFEST = JSON.stringify({ name: "x", version: "1.0.0", scripts: { test: "true" } });

let rig: Rig;
let repository: string;
let ran: CliResult;

beforeAll(async () => {
  rig = createRig();
  repository = createRepository(join(rig.root, "repo"), {
    "a.txt": "one\n",
    "package.json": MANIFEST,
    "db/1.sql": "x\n",
  });
  const plan = writePlan(rig, {
    defaults: SMALL,
    tasks: [
      { id: "plain", run: "echo two > b.txt" },
      {
        id: "risky",
        protect: ["db/"],
        run: `mkdir -p .github/workflows .vscode .husky; echo on: push > .github/workflows/ci.yml
echo '{}' > .vscode/tasks.json; echo evil > .husky/pre-commit; printf 'all:\\n\\tevil\\n' > Makefile; echo '{}' > package-lock.json
sed -i 's/"scripts":{/&"postinstall":"evil",/' package.json; chmod +x a.txt; ln -s a.txt link; echo y >> db/1.sql; echo more > 0-first.txt`,
      },
      { id: "after", depends_on: ["risky"], run: "echo fine > c.txt" },
    ],
  });
  ran = expectCode(await rig.run(["run", plan], { cwd: repository }), 0);
});
afterAll(() => endRig(rig));

const RULES =
  "protected,ci-config,git-hooks,editor-task,build-script,package-scripts,lock-file,executable-bit,symlink";

test("the report and the status list what to look at", async () => {
  expect(ran.stdout).toContain("To look at before you apply");
  expect(ran.stdout).toContain("! risky: ci-config: .github/workflows/ci.yml; runs on build servers");
  const status = await statusOf(rig);
  expect(taskOf(status, "plain").patch?.risks).toEqual([]);
  expect(taskOf(status, "after").patch?.risks).toEqual([]);
  const risks = taskOf(status, "risky").patch?.risks ?? [];
  expect(risks.map(({ rule }) => rule).join(",")).toBe(RULES);
  expect(risks[0]).toEqual({ rule: "protected", files: 1, paths: ["db/1.sql"] });
});

test("diff shows the flagged files first and says why, beside the patch", async () => {
  const shown = expectCode(await rig.run(["diff", "latest", "risky"]), 0);
  const files = [...shown.stdout.matchAll(/^diff --git a\/(\S+)/gm)].map(([, path]) => path);
  expect(files).toHaveLength(10);
  expect(files.slice(0, 2)).toEqual(["db/1.sql", ".github/workflows/ci.yml"]);
  expect(files.at(-1)).toBe("0-first.txt");
  expect(shown.stderr).toContain("warning: risky needs a look: git-hooks: .husky/pre-commit; runs when");
  expect(shown.stdout).not.toContain("needs a look");
  const names = expectCode(await rig.run(["diff", "latest", "risky", "--name-only"]), 0);
  expect(names.stdout.split("\n").slice(0, 2)).toEqual(["db/1.sql", ".github/workflows/ci.yml"]);
});

test("apply refuses with the whole list, also a task that only brings the other along", async () => {
  for (const task of ["risky", "after"]) {
    const refused = expectCode(await rig.run(["apply", "latest", task, "-y"], { cwd: repository }), 1);
    expect(refused.stderr).toContain("risky: executable-bit: a.txt; ");
    expect(refused.stderr).toContain(`\`--allow ${RULES}\``);
  }
  const asJson = expectCode(await rig.run(["apply", "latest", "-y", "--json"], { cwd: repository }), 1);
  const { error } = JSON.parse(asJson.stderr) as { error: { code: string; data: object } };
  expect(error).toMatchObject({
    code: "apply-refused",
    data: { allow: RULES.split(","), risks: [{ task: "risky" }] },
  });
  expect(git(repository, "status", "--porcelain")).toBe("");
});

test("one rule that was not allowed is enough to refuse; a rule nobody knows is a mistake", async () => {
  const most = RULES.replace(",symlink", "");
  const refused = await rig.run(["apply", "latest", "-y", "--allow", most], { cwd: repository });
  expect(expectCode(refused, 1).stderr).toContain("`--allow symlink`");
  expect(refused.stderr).not.toContain("ci-config");
  const unknown = await rig.run(["apply", "latest", "-y", "--allow", "everything"], { cwd: repository });
  expect(expectCode(unknown, 2).stderr).toContain("Allowed choices are secrets, protected, ci-config,");
  expect(git(repository, "status", "--porcelain")).toBe("");
});

test("what is not flagged needs no word, and what is allowed is taken over", async () => {
  expectCode(await rig.run(["apply", "latest", "plain", "-y"], { cwd: repository }), 0);
  expect(existsSync(join(repository, "b.txt"))).toBe(true);
  expectCode(await rig.run(["undo"], { cwd: repository }), 0);
  const argv = ["apply", "latest", "-y", "--json", "--allow", RULES];
  const applied = expectCode(await rig.run(argv, { cwd: repository }), 0);
  expect(JSON.parse(applied.stdout)).toMatchObject({
    allowed: RULES.split(","),
    applied: { target: "worktree" },
  });
  expect(readFileSync(join(repository, "package.json"), "utf8")).toContain("postinstall");
  expectCode(await rig.run(["undo"], { cwd: repository }), 0);
  expectCode(await rig.run(["apply", "latest", "-y", "--allow", "all"], { cwd: repository }), 0);
});
