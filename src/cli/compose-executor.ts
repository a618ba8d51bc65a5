/** Builds the drivers of a supervisor: engine, workspaces, doors, output. */
import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { BusPort } from "../bus/bus.ts";
import { createCallerBus } from "../bus/caller-bus.ts";
import { openDoor } from "../door/unix-door.ts";
import type { Executor } from "../executor/executor.ts";
import type { ChosenDriver } from "../executor/executor-deps.ts";
import { createLocalExecutor } from "../executor/local-executor.ts";
import { createRepositories } from "../executor/repositories.ts";
import type { RunSettings } from "../model/run.ts";
import { RunnerError } from "../model/runner-error.ts";
import { openOutputLog } from "../observe/output-log.ts";
import { createDockerEngine } from "../sandbox/docker/docker-engine.ts";
import { type Engine, type EngineInfo, LABELS } from "../sandbox/sandbox.ts";
import { ensureToolbox } from "../sandbox/toolbox.ts";
import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import { type OverlayVerdict, probeOverlay } from "../workspace/choose-driver.ts";
import { createCopyDriver } from "../workspace/copy/copy-driver.ts";
import { openObjectStore } from "../workspace/object-store.ts";
import { createOverlayDriver } from "../workspace/overlay/overlay-driver.ts";
import type { ObjectStore } from "../workspace/workspace.ts";

export interface ExecutorParts {
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly stateId: string;
  readonly endpoint: string;
  readonly busPort: Omit<BusPort, "context">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The executor for one engine. Throws RunnerError `engine-unreachable`, or `preflight-failed` where doors cannot be mounted. */
export async function composeExecutor(parts: ExecutorParts): Promise<Executor> {
  const { stateDir, cacheDir, stateId, logger, clock } = parts;
  const engine = await createDockerEngine({ endpoint: parts.endpoint, logger, probeDir: stateDir });
  const engineInfo = await engine.describe();
  if (!engineInfo.sharesFilesystem) {
    throw new RunnerError(
      "preflight-failed",
      `the engine at ${parts.endpoint} does not see this machine's files`,
      {
        hint: "doors are mounted from this machine: use an engine that runs on it",
      },
    );
  }
  const toolbox = await ensureToolbox({ cacheDir });
  const { userBase } = engineInfo;
  return createLocalExecutor({
    stateDir,
    stateId,
    cacheDir,
    engine,
    engineInfo,
    repositories: createRepositories((repository) => openObjectStore({ cacheDir, repository, userBase })),
    driverFor: createDriverChoice(parts, engine, engineInfo),
    openDoor,
    busFor: (key, context) =>
      createCallerBus(key, { ...parts.busPort, context: async () => context() }, logger),
    async openOutput(path, secrets, onText) {
      const log = await openOutputLog(path, { secrets, onText });
      for (const warning of log.warnings) logger.warn({ path }, warning);
      return {
        write: (stream, bytes) => log.write(stream, bytes),
        close: async () => {
          const { error } = await log.close();
          if (error !== null) logger.warn({ path, error }, "the output log is not whole");
        },
      };
    },
    toolboxDir: toolbox.dir,
    hostsFile: await writeHostsFile(cacheDir),
    newDoorId: () => randomBytes(6).toString("hex"),
    clock,
    logger,
  });
}

/** Overlay where a probe says it works (asked once an engine), copy elsewhere; a forced driver is taken or refused. */
function createDriverChoice(
  parts: ExecutorParts,
  engine: Engine,
  info: EngineInfo,
): (settings: RunSettings, store: ObjectStore, image: string) => Promise<ChosenDriver> {
  let verdict: Promise<OverlayVerdict> | undefined;
  const told = new Set<string>();
  return async (settings, store, image) => {
    const common = { store, volumes: engine, clock: parts.clock };
    if (settings.workspaceDriver === "copy") return { driver: createCopyDriver(common), note: null };
    verdict ??= probeOverlay({
      volumes: engine,
      sharesFilesystem: info.sharesFilesystem,
      stateDir: parts.stateDir,
      cacheDir: parts.cacheDir,
      image,
      labels: { [LABELS.state]: parts.stateId },
    });
    const { usable, ...rest } = await verdict;
    if (usable) return { driver: createOverlayDriver({ ...common, userBase: info.userBase }), note: null };
    const why = "why" in rest ? rest.why : "unknown";
    if (settings.workspaceDriver === "overlay") {
      throw new RunnerError("workspace-failed", `overlay workspaces cannot be had here: ${why}`, {
        hint: "use --workspace copy, or auto",
      });
    }
    const isNew = !told.has(settings.runId);
    told.add(settings.runId);
    return { driver: createCopyDriver(common), note: isNew ? `workspaces are copied: ${why}` : null };
  };
}

/** With no network the engine leaves /etc/hosts empty, and `localhost` would not resolve. */
async function writeHostsFile(cacheDir: string): Promise<string> {
  const path = join(cacheDir, "hosts");
  await mkdir(cacheDir, { recursive: true, mode: 0o700 });
  await writeFile(path, "127.0.0.1\tlocalhost\n::1\tlocalhost\n", { mode: 0o644 });
  return path;
}
