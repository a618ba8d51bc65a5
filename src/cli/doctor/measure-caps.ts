/**
 * `bulkhead doctor --caps`: asks for each cap, lets a real container take as much as it can, and compares. What the kernel says it
 * enforces (the state) and what came out (the verdict) are told apart.
 *
 * Theory of operation: three lanes run side by side, since what they load differs: the processor; the disk's rates, one after the
 * other; and what is over at once. Each probe is a container of its own with small caps, so that one table takes about ten seconds.
 */

import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { AGENT_UID } from "../../model/agent-user.ts";
import type { CapReport, Caps } from "../../model/caps.ts";
import { type AttemptKey, formatRunId, taskIdSchema } from "../../model/ids.ts";
import { explainFailure } from "../../observe/explain-failure.ts";
import type { Engine, SandboxSpec } from "../../sandbox/sandbox.ts";
import type { Workspace } from "../../workspace/workspace.ts";
import type { CliContext } from "../context.ts";
import { AMOUNTS, type MeasuredCap, PROCESSOR, type Probe, RATES, type Seen } from "./cap-probes.ts";
import { PROBE_STATE } from "./probe-sandbox.ts";

/** A workspace without a repository behind it. */
export type OpenScratch = (request: {
  readonly key: AttemptKey;
  readonly directory: string;
  readonly image: string;
  readonly stateId: string;
  readonly diskBytes: number | null;
}) => Promise<Workspace>;

const MIB = 1024 ** 2;
const MAX_OUTPUT_CHARS = 1024;
const PROBE_LIMIT_MS = 60_000;

const BASE: Caps = {
  cpus: 1,
  memoryBytes: 64 * MIB,
  swapBytes: 0,
  pids: 64,
  openFiles: 1024,
  diskBytes: null,
  tmpBytes: 8 * MIB,
  ioReadBytesPerSecond: null,
  ioWriteBytesPerSecond: null,
  ioReadOpsPerSecond: null,
  ioWriteOpsPerSecond: null,
};

/** Measures every cap on this machine; `swap` goes with memory (none is asked for). */
export async function measureCaps(
  engine: Engine,
  image: string,
  openScratch: OpenScratch,
  context: CliContext,
): Promise<readonly MeasuredCap[]> {
  const info = await engine.inspectImage(image);
  if (info === null) return [];
  await mkdir(context.stateDir, { recursive: true, mode: 0o700 });
  const directory = await mkdtemp(join(context.stateDir, "caps-"));
  const lane = async (probes: readonly Probe[]) => {
    const rows: MeasuredCap[] = [];
    for (const probe of probes) rows.push(await measure(engine, info.id, openScratch, directory, probe));
    return rows;
  };
  try {
    return (await Promise.all([[PROCESSOR], AMOUNTS, RATES].map(lane))).flat();
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function measure(
  engine: Engine,
  image: string,
  openScratch: OpenScratch,
  directory: string,
  probe: Probe,
): Promise<MeasuredCap> {
  const { cap, asked } = probe;
  const suffix = randomBytes(3).toString("hex");
  const runId = formatRunId(new Date().toISOString(), suffix);
  const key = { runId, taskId: taskIdSchema.parse("doctor"), attempt: 1 };
  const diskBytes = probe.workspace === "sized" ? asked : null;
  let workspace: Workspace | null = null;
  try {
    if (probe.workspace !== undefined) {
      const own = join(directory, suffix);
      workspace = await openScratch({ key, directory: own, image, stateId: PROBE_STATE, diskBytes });
    }
    const { caps, seen } = await runProbe(engine, specOf(probe, key, image, workspace), probe);
    return {
      cap,
      asked,
      state: caps.find((one) => one.cap === cap)?.state ?? "not-enforced",
      ...probe.judge(seen),
    };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    return { cap, asked, measured: null, state: "not-enforced", verdict: "not measured", why };
  } finally {
    await workspace?.release();
  }
}

function specOf(probe: Probe, key: AttemptKey, image: string, workspace: Workspace | null): SandboxSpec {
  const caps = { ...BASE, ...probe.caps };
  const target = "/workspace";
  return {
    key,
    stateId: PROBE_STATE,
    name: `bulkhead-doctor-${key.runId}`,
    image,
    // What is over in a few milliseconds is gone before its caps are read back.
    argv: ["sh", "-c", `sleep 0.3; ${probe.script}`],
    stdinPath: null,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: "/home/agent", LANG: "C.UTF-8" },
    uid: AGENT_UID,
    workingDir: workspace === null ? "/tmp" : target,
    mounts: workspace === null ? [] : [{ type: "volume", volume: workspace.volume, target, readOnly: false }],
    caps,
    diskEnforced: workspace?.diskCap === "hard" && caps.diskBytes !== null ? { bytes: caps.diskBytes } : null,
    innerTimeoutMs: PROBE_LIMIT_MS,
    ioDevicePath: workspace?.devicePath ?? null,
    labels: {},
  };
}

async function runProbe(
  engine: Engine,
  spec: SandboxSpec,
  probe: Probe,
): Promise<{ caps: readonly CapReport[]; seen: Seen }> {
  const created = await engine.create(spec);
  if (!created.ok) throw new Error(explainFailure(created.error).headline);
  try {
    let output = "";
    let firstMs: number | null = null;
    let lastMs = 0;
    const started = await created.value.start(
      ({ bytes }) => {
        lastMs = performance.now();
        firstMs ??= lastMs;
        if (output.length < MAX_OUTPUT_CHARS) output += bytes.toString("latin1");
      },
      { strict: false },
    );
    if (!started.ok) throw new Error(explainFailure(started.error).headline);
    const during = (await probe.during?.(started.value)) ?? null;
    if (probe.during !== undefined) await started.value.kill("cancelled");
    const exit = await started.value.ended;
    const seen = { exit, during, spokeMs: lastMs - (firstMs ?? lastMs), output: output.trim() };
    return { caps: started.value.caps, seen };
  } finally {
    await created.value.remove();
  }
}
