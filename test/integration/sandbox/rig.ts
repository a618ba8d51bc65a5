import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CapReport, Caps } from "../../../src/model/caps.ts";
import type { Failure } from "../../../src/model/failure.ts";
import { runIdSchema, taskIdSchema } from "../../../src/model/ids.ts";
import { createDockerEngine } from "../../../src/sandbox/docker/docker-engine.ts";
import {
  type Engine,
  LABELS,
  type OutputChunk,
  type RunningSandbox,
  type SandboxExit,
  type SandboxSpec,
} from "../../../src/sandbox/sandbox.ts";

export const IMAGE = process.env["BULKHEAD_TEST_IMAGE"] ?? "bulkhead/agent:latest";
export const ENDPOINT = process.env["DOCKER_HOST"] ?? "unix:///var/run/docker.sock";
export const MIB = 1024 * 1024;

export const QUIET = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly caps: readonly CapReport[];
  readonly exit: SandboxExit;
}

export interface Rig {
  readonly engine: Engine;
  readonly stateId: string;
  readonly directory: string;
  spec(
    argv: readonly string[],
    over?: Partial<Omit<SandboxSpec, "caps">> & { caps?: Partial<Caps> },
  ): SandboxSpec;
  /** create, start, wait, remove. `during` acts on the running sandbox. */
  run(spec: SandboxSpec, during?: (running: RunningSandbox) => Promise<void>): Promise<Ran>;
  /** The failure of a create or strict start that must fail. */
  refusal(spec: SandboxSpec): Promise<Failure>;
  /** What of this rig is left on the engine and among the control groups. */
  leftovers(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** One engine connection with its own state id, so that suites cannot see each other's containers. */
export async function openRig(): Promise<Rig> {
  const directory = mkdtempSync(join(tmpdir(), "bulkhead-sandbox-"));
  const engine = await createDockerEngine({ endpoint: ENDPOINT, logger: QUIET, probeDir: directory });
  const stateId = randomBytes(8).toString("hex");
  let count = 0;

  const spec: Rig["spec"] = (argv, over = {}) => {
    count += 1;
    return {
      key: {
        runId: runIdSchema.parse("20261130-142501-3f9a2c"),
        taskId: taskIdSchema.parse("task"),
        attempt: count,
      },
      stateId,
      name: `bulkhead-test-${stateId}-${count}`,
      image: IMAGE,
      argv,
      stdinPath: null,
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: "/home/agent", LANG: "C.UTF-8", TERM: "dumb" },
      uid: 10_001,
      workingDir: "/",
      mounts: [],
      innerTimeoutMs: 0,
      ioDevicePath: null,
      labels: {},
      ...over,
      caps: {
        cpus: 1,
        memoryBytes: 128 * MIB,
        swapBytes: 0,
        pids: 64,
        openFiles: 1_024,
        diskBytes: null,
        tmpBytes: 16 * MIB,
        ioReadBytesPerSecond: null,
        ioWriteBytesPerSecond: null,
        ioReadOpsPerSecond: null,
        ioWriteOpsPerSecond: null,
        ...over.caps,
      },
    };
  };

  return {
    engine,
    stateId,
    directory,
    spec,
    async run(asked, during) {
      const created = await engine.create(asked);
      if (!created.ok) throw new Error(`create: ${JSON.stringify(created.error)}`);
      const out: Buffer[] = [];
      const err: Buffer[] = [];
      const sink = (chunk: OutputChunk) => {
        (chunk.stream === "stdout" ? out : err).push(Buffer.from(chunk.bytes));
      };
      try {
        const started = await created.value.start(sink, { strict: false });
        if (!started.ok) throw new Error(`start: ${JSON.stringify(started.error)}`);
        await during?.(started.value);
        const exit = await started.value.ended;
        return {
          stdout: Buffer.concat(out).toString("latin1"),
          stderr: Buffer.concat(err).toString("latin1"),
          caps: started.value.caps,
          exit,
        };
      } finally {
        await created.value.remove();
      }
    },
    async refusal(asked) {
      const created = await engine.create(asked);
      if (!created.ok) return created.error;
      try {
        const started = await created.value.start(() => undefined, { strict: true });
        if (started.ok) {
          await started.value.kill("cancelled");
          throw new Error("was not refused");
        }
        return started.error;
      } finally {
        await created.value.remove();
      }
    },
    async leftovers() {
      const labels = { [LABELS.state]: stateId };
      const containers = (await engine.list(labels)).map(({ name }) => name);
      const volumes = (await engine.listVolumes(labels)).map(({ name }) => name);
      return [...containers, ...volumes, ...ownGroups(stateId)];
    },
    async close() {
      for (const { id } of await engine.list({ [LABELS.state]: stateId })) await engine.removeById(id);
      for (const { name } of await engine.listVolumes({ [LABELS.state]: stateId }))
        await engine.removeVolume(name);
      await engine.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Control groups named after this rig, one level down in each hierarchy. */
function ownGroups(stateId: string): readonly string[] {
  const root = "/sys/fs/cgroup";
  const names = [root, ...readdirSync(root).map((name) => join(root, name))];
  return names.flatMap((directory) => {
    try {
      return readdirSync(directory)
        .filter((name) => name.includes(stateId))
        .map((name) => join(directory, name));
    } catch {
      // A file rather than a hierarchy.
      return [];
    }
  });
}
