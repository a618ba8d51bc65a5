/**
 * The whole life of a trivial task, ready to patch (decide, log, snapshot, door, container with caps read back, import, log again),
 * one at a time, against `docker run --rm --network none` of the same image, command and caps, in turn with it.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { composeExecutor } from "../src/cli/compose-executor.ts";
import type { RunEvent } from "../src/model/event.ts";
import { formatRunId } from "../src/model/ids.ts";
import type { RunSettings } from "../src/model/run.ts";
import type { TaskSpec } from "../src/model/task.ts";
import { parsePlan } from "../src/plan/parse-plan.ts";
import { DEFAULT_CONFIG } from "../src/plan/project-config.ts";
import { openEventStore } from "../src/store/sqlite/sqlite-event-store.ts";
import { createBusPort } from "../src/supervisor/bus-port.ts";
import { startRun } from "../src/supervisor/run-controller.ts";
import { readStateId } from "../src/supervisor/serve.ts";
import { databasePath } from "../src/util/state-layout.ts";
import { readRepositoryState } from "../src/workspace/repository-state.ts";
import { createRepository } from "../test/support/bulkhead-cli.ts";
import { type BenchRow, printRows, rowOf, spread } from "./support/bench-row.ts";

const IMAGE = "bulkhead/agent:latest";
const ENDPOINT = process.env["DOCKER_HOST"] ?? "unix:///var/run/docker.sock";
const SCRIPT = "echo done > result.txt";
const WARMUPS = 3;
const RUNS = 15;

/** Measures and returns the row of issue "the main job", bench (a). */
export async function runLifeBench(): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), "bh-life-"));
  try {
    const { ours, rival, steps } = await measure(root);
    const ratios = ours.map((ms, index) => ms / (rival[index] ?? Number.NaN));
    const [, ourMedian] = spread(ours);
    const [, rivalMedian] = spread(rival);
    const detail = `median ${ourMedian.toFixed(0)} ms against ${rivalMedian.toFixed(0)} ms; ${steps}; less is better`;
    return [
      rowOf("life of a trivial task, ready to patch", "docker run --rm --network none", ratios, detail),
    ];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function measure(root: string): Promise<{ ours: number[]; rival: number[]; steps: string }> {
  const files = Object.fromEntries(
    Array.from({ length: 200 }, (_, i) => [`src/file${i}.txt`, `content ${i}\n`]),
  );
  const repository = createRepository(join(root, "repository"), files);
  const stateDir = join(root, "state");
  mkdirSync(stateDir, { mode: 0o700 });
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const clock = { nowMs: Date.now };
  const store = openEventStore(databasePath(stateDir));
  const executor = await composeExecutor({
    stateDir,
    cacheDir: join(root, "cache"),
    stateId: readStateId(stateDir),
    endpoint: ENDPOINT,
    busPort: createBusPort({ stateDir, store, run: () => null }),
    clock,
    logger: silent,
  });
  const plan = parsePlan(
    { id: "trivial", run: SCRIPT, caps: { memory: "256MiB" } },
    { config: DEFAULT_CONFIG },
  );
  if (!plan.ok) throw new Error(JSON.stringify(plan.error));
  const { headCommit } = await readRepositoryState(repository);
  const lives: Life[] = [];
  const rival: number[] = [];
  try {
    for (let round = -WARMUPS; round < RUNS; round++) {
      const runId = formatRunId(new Date().toISOString(), (round + WARMUPS).toString(16).padStart(6, "0"));
      const settings: RunSettings = {
        runId,
        repository,
        baseCommit: headCommit,
        baseRef: "main",
        slots: 1,
        seed: 1,
        engine: ENDPOINT,
        workspaceDriver: "auto",
        sources: [],
        dirty: false,
      };
      const life = await live({ store, executor, clock, logger: silent }, settings, plan.value.tasks);
      const ms = dockerRun();
      if (round < 0) continue;
      lives.push(life);
      rival.push(ms);
    }
  } finally {
    await executor.close();
    store.close();
  }
  const [, snapshot] = spread(lives.map((life) => life.snapshotMs));
  const [, started] = spread(lives.map((life) => life.startedMs));
  const [, main] = spread(lives.map((life) => life.mainMs));
  const [, all] = spread(lives.map((life) => life.totalMs));
  const steps = `snapshot ${snapshot.toFixed(0)}, to started ${started.toFixed(0)}, main ${main.toFixed(0)}, all ${all.toFixed(0)}`;
  return { ours: lives.map((life) => life.totalMs), rival, steps };
}

interface Life {
  readonly totalMs: number;
  readonly snapshotMs: number;
  readonly startedMs: number;
  readonly mainMs: number;
}

/** One run with one task; the time until its patch is in the log. */
async function live(
  deps: Parameters<typeof startRun>[0],
  settings: RunSettings,
  tasks: readonly TaskSpec[],
): Promise<Life> {
  const seen: Partial<Record<RunEvent["type"], number>> = {};
  const details = { mainMs: Number.NaN };
  const began = performance.now();
  const unsubscribe = deps.store.subscribe(({ event }) => {
    seen[event.type] ??= performance.now() - began;
    if (event.type === "attempt-ended") {
      details.mainMs = event.mainMs ?? Number.NaN;
      if (event.outcome.status === "failed") throw new Error(JSON.stringify(event.outcome.failure));
    }
  });
  const run = startRun(deps, { settings, tasks, secrets: [] });
  await run.settled;
  unsubscribe();
  return {
    totalMs: seen["task-succeeded"] ?? Number.NaN,
    snapshotMs: seen["snapshot-prepared"] ?? Number.NaN,
    startedMs: seen["sandbox-started"] ?? Number.NaN,
    mainMs: details.mainMs,
  };
}

function dockerRun(): number {
  const began = performance.now();
  const caps = ["--cpus", "1", "--memory", "256m", "--memory-swap", "256m", "--pids-limit", "256"];
  const done = spawnSync(
    "docker",
    ["run", "--rm", "--network", "none", ...caps, IMAGE, "/bin/sh", "-c", `cd /tmp && ${SCRIPT}`],
    { encoding: "utf8" },
  );
  if (done.status !== 0) throw new Error(`docker run: ${done.stderr}`);
  return performance.now() - began;
}

if (import.meta.main) printRows(await runLifeBench());
