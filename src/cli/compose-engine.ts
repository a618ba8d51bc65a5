/** The engine's drivers as commands use them. */
import { mkdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { RunnerError } from "../model/runner-error.ts";
import { createDockerEngine } from "../sandbox/docker/docker-engine.ts";
import { findEngine } from "../sandbox/docker/find-engine.ts";
import { type EngineFound, explainSearch } from "../sandbox/engine-setup.ts";
import { type Engine, LABELS } from "../sandbox/sandbox.ts";
import { createOverlayDriver } from "../workspace/overlay/overlay-driver.ts";
import type { CliContext } from "./context.ts";
import type { OpenScratch } from "./doctor/measure-caps.ts";

export { checkImage, ensureImage } from "../sandbox/docker/build-image.ts";
export { findEngine } from "../sandbox/docker/find-engine.ts";
export { startEngine } from "../sandbox/docker/start-engine.ts";

/** An engine that answers. Throws RunnerError `engine-unreachable` with what was tried. */
export async function needEngine(env: CliContext["env"], explicit: string | undefined): Promise<EngineFound> {
  const search = await findEngine(env, explicit === undefined ? {} : { explicit });
  if (search.endpoint !== null) return search;
  const tried = explainSearch(search).join("\n  ");
  throw new RunnerError("engine-unreachable", `no container engine answers:\n  ${tried}`, {
    data: { tried: search.tried },
    hint:
      search.named === null
        ? "run `bulkhead setup` to start one, or name one with --engine"
        : "start it, or name another with --engine",
  });
}

/** Connects for one command; nothing of it is logged. */
export function openEngine(
  found: Pick<EngineFound, "endpoint" | "certPath">,
  probeDir: string,
): Promise<Engine> {
  mkdirSync(probeDir, { recursive: true, mode: 0o700 });
  const tls = found.certPath === null ? {} : { tlsDir: found.certPath };
  return createDockerEngine({
    endpoint: found.endpoint,
    logger: pino({ level: "silent" }),
    probeDir,
    ...tls,
  });
}

/** A workspace over an empty tree, for measuring. No patch can be read from it: there is no object store behind it. */
export async function openScratch(
  engine: Engine,
  { key, directory, image, stateId, diskBytes }: Parameters<OpenScratch>[0],
): ReturnType<OpenScratch> {
  const { userBase } = await engine.describe();
  const lower = join(directory, "lower");
  await mkdir(lower, { recursive: true, mode: 0o755 });
  const clock = { nowMs: () => Date.now() };
  const driver = createOverlayDriver({ store: { gitDir: "" }, volumes: engine, clock, userBase });
  const snapshot = { commit: "", insideHead: "", layers: [lower], manifestPath: "" };
  const labels = { [LABELS.state]: stateId };
  return driver.open({ key, snapshot, attemptDir: directory, labels, image, diskBytes, message: "" });
}
