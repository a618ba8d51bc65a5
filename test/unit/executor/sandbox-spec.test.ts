import { describe, expect, test } from "vitest";
import type { AttemptRequest } from "../../../src/executor/executor.ts";
import { buildSandboxSpec, engineName, type SandboxPlaces } from "../../../src/executor/sandbox-spec.ts";
import { formatRunId, taskIdSchema } from "../../../src/model/ids.ts";
import { parsePlan } from "../../../src/plan/parse-plan.ts";
import { DEFAULT_CONFIG } from "../../../src/plan/project-config.ts";

const RUN = formatRunId("2026-01-02T03:04:05.678Z", "abcdef");
const PLACES: SandboxPlaces = {
  stateId: "0123456789abcdef",
  volume: "volume",
  devicePath: null,
  diskCap: "none",
  doorDir: "/state/d/1",
  toolboxDir: "/cache/toolbox/1",
  hostsFile: "/cache/hosts",
  imageId: "sha256:1",
};

function requestFor(task: object): AttemptRequest {
  const plan = parsePlan(task, { config: DEFAULT_CONFIG });
  if (!plan.ok || !plan.value.tasks[0]) throw new Error(JSON.stringify(plan));
  const key = { runId: RUN, taskId: taskIdSchema.parse("one"), attempt: 2 };
  return {
    key,
    task: plan.value.tasks[0],
    settings: {
      runId: RUN,
      repository: "/repository",
      baseCommit: "0".repeat(40),
      baseRef: null,
      slots: 1,
      seed: 0,
      engine: "unix:///engine.sock",
      workspaceDriver: "auto",
      sources: [],
      dirty: false,
    },
    parents: [],
    secrets: ["a secret value"],
  };
}

describe("buildSandboxSpec", () => {
  test("lets nothing into the environment but the fixed set and the task's own", () => {
    const spec = buildSandboxSpec(requestFor({ id: "one", run: "true", env: { FLAVOUR: "sweet" } }), PLACES);
    expect(Object.keys(spec.env).sort()).toEqual([
      "BULKHEAD_ATTEMPT",
      "BULKHEAD_DOOR",
      "BULKHEAD_RUN",
      "BULKHEAD_TASK",
      "FLAVOUR",
      "HOME",
      "LANG",
      "LC_ALL",
      "LOGNAME",
      "PATH",
      "TERM",
      "USER",
      "XDG_CACHE_HOME",
    ]);
    expect(JSON.stringify(spec)).not.toContain("a secret value");
  });

  test("mounts the workspace writable and everything else read-only; no other host path", () => {
    const spec = buildSandboxSpec(requestFor({ id: "one", run: "true" }), PLACES);
    expect(spec.mounts.filter((mount) => !mount.readOnly).map((mount) => mount.target)).toEqual([
      "/workspace",
    ]);
    expect(spec.mounts.map((mount) => mount.target).sort()).toEqual([
      "/etc/hosts",
      "/opt/bulkhead",
      "/run/bulkhead",
      "/workspace",
    ]);
  });

  test("ends itself inside a little after the host would have", () => {
    const spec = buildSandboxSpec(requestFor({ id: "one", run: "true", timeout: "1m" }), PLACES);
    expect(spec.innerTimeoutMs).toBeGreaterThan(60_000);
    expect(spec.innerTimeoutMs).toBeLessThanOrEqual(90_000);
  });

  test("gives a prompt by a file, never by argv or environment", () => {
    const task = {
      tasks: [{ id: "one", agent: "a", prompt: "a long prompt" }],
      agents: { a: { argv: ["agent"] } },
    };
    const spec = buildSandboxSpec(requestFor(task), PLACES);
    expect(spec.stdinPath).toBe("/run/bulkhead/stdin");
    expect(JSON.stringify([spec.argv, spec.env])).not.toContain("a long prompt");
  });

  test("says the disk cap is enforced only where the workspace is on a file system of that size", () => {
    const request = requestFor({ id: "one", run: "true", caps: { disk: "1GiB" } });
    expect(buildSandboxSpec(request, PLACES).diskEnforced).toBeNull();
    expect(buildSandboxSpec(request, { ...PLACES, diskCap: "hard" }).diskEnforced).toEqual({
      bytes: 1024 ** 3,
    });
  });
});

describe("engineName", () => {
  test("differs by state directory, run, task and attempt", () => {
    const key = { runId: RUN, taskId: taskIdSchema.parse("one"), attempt: 1 };
    const names = [
      engineName("aaaaaaaaaa", key),
      engineName("bbbbbbbbbb", key),
      engineName("aaaaaaaaaa", { ...key, attempt: 2 }),
      engineName("aaaaaaaaaa", { ...key, taskId: taskIdSchema.parse("two") }),
      engineName("aaaaaaaaaa", { ...key, runId: formatRunId("2026-01-02T03:04:05Z", "abcdee") }),
    ];
    expect(new Set(names).size).toBe(names.length);
  });
});
