import { describe, expect, test } from "vitest";
import {
  ALLOWABLE,
  explainRisk,
  PROTECTED_RULE,
  RISK_RULES,
  type RiskContent,
  type RiskyChange,
} from "../../../src/policy/risks.ts";

const FILE = "100644";

/** Rules that a change falls under, those that want to see the content with a `?`. */
function rulesOf(path: string, modes: Partial<RiskyChange> = {}): string[] {
  return RISK_RULES.flatMap((rule) => {
    const verdict = rule.test({ path, oldMode: FILE, newMode: FILE, ...modes });
    return verdict === false ? [] : [verdict === true ? rule.id : `${rule.id}?`];
  });
}

describe("paths of the risk list", () => {
  test.each([
    ["ci-config", ".github/workflows/ci.yml"],
    ["ci-config", ".github/workflows/deep/er/ci.yml"],
    ["ci-config", ".GitHub/Workflows/ci.yml"],
    ["ci-config", ".github/workflows"],
    ["ci-config", "sub/.gitlab-ci.yml"],
    ["ci-config", ".drone.yaml"],
    ["git-hooks", ".husky/pre-commit"],
    ["git-hooks", ".pre-commit-config.yaml"],
    ["git-config", "docs/.gitattributes"],
    ["git-config", ".gitmodules"],
    ["git-config", "docs/HEAD"],
    ["editor-task", ".vscode/tasks.json"],
    ["editor-task", ".devcontainer/devcontainer.json"],
    ["agent-config", "CLAUDE.md"],
    ["agent-config", "bulkhead.yaml"],
    ["build-script", "Makefile"],
    ["build-script", "lib/makefile"],
    ["build-script", "justfile"],
    ["build-script", "cmake/find.cmake"],
    ["build-script", "setup.py"],
    ["build-script", "Dockerfile.prod"],
    ["dependencies", "requirements-dev.txt"],
    ["dependencies", "go.mod"],
    ["lock-file", "web/package-lock.json"],
    ["lock-file", "Cargo.lock"],
    ["tool-config", ".npmrc"],
    ["tool-config", "web/.envrc"],
    ["tool-config", ".yarn/plugins/x.cjs"],
  ])("%s: %s", (rule, path) => {
    expect(rulesOf(path)).toContain(rule);
    expect(rulesOf(path, { oldMode: null })).toContain(rule);
    expect(rulesOf(path, { newMode: null })).toContain(rule);
  });

  test.each([
    "src/main.ts",
    "docs/github/workflows.md",
    "xMakefile",
    "Makefile/notes.txt.md/x",
    "src/setup.pyx",
    "src/gitlab-ci.yml.md",
    "my.github/workflows/ci.yml",
    "package.json.md",
    "vscode/tasks.json",
    "a\n.npmrcs",
  ])("nothing: %j", (path) => {
    expect(rulesOf(path)).toEqual([]);
  });

  test("a name that spans lines hides nothing", () => {
    expect(rulesOf("a\nb/.github/workflows/x\ny.yml")).toEqual(["ci-config"]);
  });

  test("only package.json is decided by its content", () => {
    expect(rulesOf("web/package.json")).toEqual(["package-scripts?", "dependencies?"]);
  });
});

describe("modes of the risk list", () => {
  test.each([
    [{ oldMode: FILE, newMode: "100755" }, ["executable-bit"]],
    [{ oldMode: null, newMode: "100755" }, ["executable-bit"]],
    [{ oldMode: "120000", newMode: "100755" }, ["executable-bit"]],
    [{ oldMode: "100755", newMode: "100755" }, []],
    [{ oldMode: "100755", newMode: FILE }, []],
    [{ oldMode: null, newMode: "120000" }, ["symlink"]],
    [{ oldMode: "120000", newMode: "120000" }, ["symlink"]],
    [{ oldMode: "120000", newMode: null }, []],
  ])("%j: %j", (modes, rules) => {
    expect(rulesOf("notes.txt", modes)).toEqual(rules);
  });
});

describe("package.json", () => {
  const changed = (before: RiskContent, after: RiskContent): string[] =>
    RISK_RULES.filter((rule) => rule.testContent?.(before, after)).map(({ id }) => id);
  const BASE = { name: "x", version: "1.0.0", scripts: { test: "t" }, dependencies: { a: "1" } };
  const json = (value: object): string => JSON.stringify(value, null, 2);

  test.each([
    ["a new version alone", json(BASE), json({ ...BASE, version: "2.0.0" }), []],
    ["other spacing", json(BASE), JSON.stringify(BASE), []],
    [
      "an install script",
      json(BASE),
      json({ ...BASE, scripts: { test: "t", postinstall: "p" } }),
      ["package-scripts"],
    ],
    ["no scripts any more", json(BASE), json({ ...BASE, scripts: undefined }), ["package-scripts"]],
    [
      "another dependency",
      json(BASE),
      json({ ...BASE, dependencies: { a: "1", b: "git+ssh://x" } }),
      ["dependencies"],
    ],
    ["an override", json(BASE), json({ ...BASE, overrides: { a: "2" } }), ["dependencies"]],
    ["a new file without any", null, json({ name: "x" }), []],
    ["a new file with a script", null, json({ scripts: { preinstall: "p" } }), ["package-scripts"]],
    ["a deleted file", json(BASE), null, ["package-scripts", "dependencies"]],
    ["what is no JSON", json(BASE), "{ scripts: 1 }", ["package-scripts", "dependencies"]],
    ["what is no object", json(BASE), "[]", ["package-scripts", "dependencies"]],
    ["what was not read", json(BASE), "unread", ["package-scripts", "dependencies"]],
    // The later of two equal keys counts for npm as well as for us.
    [
      "a key twice",
      json(BASE),
      '{"scripts":{"test":"t"},"scripts":{"test":"u"},"dependencies":{"a":"1"}}',
      ["package-scripts"],
    ],
    [
      "a key by another spelling",
      json(BASE),
      '{"\\u0073cripts":{"test":"u"},"dependencies":{"a":"1"}}',
      ["package-scripts"],
    ],
  ] as const)("%s", (_, before, after, rules) => {
    expect(changed(before, after)).toEqual(rules);
  });
});

test("each rule can be allowed, has one name, and says why it is there", () => {
  expect(new Set(ALLOWABLE).size).toBe(ALLOWABLE.length);
  for (const id of [PROTECTED_RULE, ...RISK_RULES.map((rule) => rule.id)]) {
    expect(ALLOWABLE).toContain(id);
    expect(explainRisk(id)).not.toBe("");
    expect(id).toMatch(/^[a-z]+(-[a-z]+)*$/);
  }
});
