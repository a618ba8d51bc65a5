import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadConfig } from "../../../src/plan/load-config.ts";
import { formatProblem } from "../../../src/plan/plan-problem.ts";
import { DEFAULT_CONFIG } from "../../../src/plan/project-config.ts";
import { createPlanRig, type PlanRig } from "./plan-rig.ts";

let rig: PlanRig;
beforeEach(() => {
  rig = createPlanRig();
});
afterEach(() => rig.dispose());

async function complaints(): Promise<readonly string[]> {
  const config = await loadConfig(rig.root);
  return config.ok ? [] : config.error.map(formatProblem);
}

test("a repository without a configuration has the defaults", async () => {
  expect(await loadConfig(rig.root)).toEqual({ ok: true, value: DEFAULT_CONFIG });
});

test("a file of comments alone is one that changes nothing", async () => {
  rig.write("bulkhead.yaml", "# all commented out\n\n   # defaults:\n");
  expect(await loadConfig(rig.root)).toEqual({
    ok: true,
    value: { ...DEFAULT_CONFIG, source: "bulkhead.yaml" },
  });
});

test("YAML and JSON say the same", async () => {
  rig.write(
    "bulkhead.yml",
    "agents: {a: {argv: [a], prompt_by: argument}}\nsecrets: KEY\ndefaults: {slots: 3, caps: {memory: 2g}}\n",
  );
  const yaml = await loadConfig(rig.root);
  const other = createPlanRig();
  try {
    other.write(
      "bulkhead.json",
      '{"agents": {"a": {"argv": ["a"], "prompt_by": "argument"}}, "secrets": ["KEY"], "defaults": {"slots": 3, "caps": {"memory": "2g"}}}',
    );
    const json = await loadConfig(other.root);
    if (!yaml.ok || !json.ok) throw new Error("refused");
    expect({ ...json.value, source: "" }).toEqual({ ...yaml.value, source: "" });
    expect(yaml.value).toMatchObject({ source: "bulkhead.yml", slots: 3, secrets: ["KEY"] });
    expect(yaml.value.agents.get("a")).toEqual({ argv: ["a"], promptBy: "argument", env: {} });
    expect(yaml.value.defaults.caps.memoryBytes).toBe(2 * 1024 ** 3);
  } finally {
    other.dispose();
  }
});

test("a wrong one is told with file and line, and never replaced by the defaults", async () => {
  rig.write("bulkhead.yaml", "defaults:\n  timout: 10m\n  caps:\n    memory: lots\negress: []\n");
  expect(await complaints()).toEqual([
    'bulkhead.yaml:4: defaults.caps.memory: "lots" is not a size; use e.g. 512m, 2GiB',
    "bulkhead.yaml:2: defaults.timout: unknown field; did you mean timeout?",
    "bulkhead.yaml:5: egress: unknown field; use one of defaults, agents or secrets",
  ]);
});

test("two of them, one with two documents, one that is a link, one that is a folder", async () => {
  rig.write("bulkhead.yaml", "defaults: {}\n---\ndefaults: {}\n");
  expect(await complaints()).toEqual(["bulkhead.yaml: holds several documents, a configuration is one"]);
  rig.write("bulkhead.json", "{}");
  expect(await complaints()).toEqual([
    "bulkhead.yaml: there is also bulkhead.json, and only one can hold; use one of bulkhead.yaml or bulkhead.json",
  ]);

  const other = createPlanRig();
  try {
    symlinkSync("/etc/hostname", join(other.root, "bulkhead.yaml"));
    const linked = await loadConfig(other.root);
    expect(linked.ok ? "" : linked.error.map(formatProblem).join()).toMatch(
      /^bulkhead\.yaml: is a symbolic link/,
    );
    other.write("bulkhead.d/bulkhead.json/x", "");
    const folder = await loadConfig(join(other.root, "bulkhead.d"));
    expect(folder.ok ? "" : folder.error.map(formatProblem).join()).toBe("bulkhead.json: is a folder");
  } finally {
    other.dispose();
  }
});
