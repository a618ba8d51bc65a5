/** What starting a run needs: the engine, the preflight, and how the supervisor is launched. */
import { availableParallelism } from "node:os";
import type { SweptItem } from "../executor/executor.ts";
import { RunnerError } from "../model/runner-error.ts";
import { checkPreflight, DEFAULT_PREFLIGHT_LIMITS } from "../policy/preflight.ts";
import { measureHost } from "../sandbox/host-measures.ts";
import { type Engine, type EngineInfo, LABELS } from "../sandbox/sandbox.ts";
import { reachSupervisor, type SupervisorLaunch } from "../supervisor/reach-supervisor.ts";
import {
  type PreflightRequest,
  type RunPlanOptions,
  type StartedRun,
  startPlan,
  supervisorProgram,
} from "../supervisor/run-plan.ts";
import { probeOverlay } from "../workspace/choose-driver.ts";
import { needEngine, openEngine } from "./compose-engine.ts";
import type { CliContext } from "./context.ts";
import { PROBE_STATE } from "./doctor/probe-sandbox.ts";
import { packageVersion } from "./version.ts";

/**
 * Output that pours in is garbage as soon as it is on disk. With the runtime's own size the supervisor takes 50 MB more for a gigabyte of it,
 * with this 10 (measured).
 */
const YOUNG_GENERATION = "--max-semi-space-size=4";

type Surroundings = Pick<CliContext, "cwd" | "env" | "stateDir" | "cacheDir">;

/** Clean-up through the supervisor, which alone knows what is active; one is started where none lives. */
export async function sweep(
  context: Surroundings,
  options: { readonly dryRun: boolean; readonly olderThanMs: number | null },
): Promise<readonly SweptItem[]> {
  const { endpoint } = await needEngine(context.env, undefined);
  const launch = launchSupervisor(context.env, context.stateDir, context.cacheDir);
  const client = await reachSupervisor(context.stateDir, packageVersion(), launch);
  try {
    const params = { dry_run: options.dryRun, older_than_ms: options.olderThanMs, engine: endpoint };
    return ((await client.call("gc", params)) as { items: readonly SweptItem[] }).items;
  } finally {
    client.close();
  }
}

function launchSupervisor(env: CliContext["env"], stateDir: string, cacheDir: string): SupervisorLaunch {
  return {
    argv: [process.execPath, YOUNG_GENERATION, supervisorProgram(import.meta.url), "supervise"],
    env: { ...env, BULKHEAD_STATE_DIR: stateDir, BULKHEAD_CACHE_DIR: cacheDir },
  };
}

/** Starts a plan from a program or a command line. */
export function startRun(context: Surroundings, options: RunPlanOptions): Promise<StartedRun> {
  return startPlan(
    {
      version: packageVersion(),
      cwd: context.cwd,
      env: context.env,
      stateDir: context.stateDir,
      cacheDir: context.cacheDir,
      hostCpus: availableParallelism(),
      launch: (stateDir, cacheDir) => launchSupervisor(context.env, stateDir, cacheDir),
      findEngine: async (explicit) => (await needEngine(context.env, explicit)).endpoint,
      preflight: (request) => preflight(request, context.env),
    },
    options,
  );
}

/** Refuses with every reason at once; gives what is merely doubtful as warnings (row A6). */
async function preflight(request: PreflightRequest, env: CliContext["env"]): Promise<readonly string[]> {
  const engine = await openEngine(await needEngine(env, request.engine), request.stateDir);
  try {
    const images = await Promise.all(
      request.images.map(async (name) => ({ name, isPresent: (await engine.inspectImage(name)) !== null })),
    );
    const host = await measureHost([
      { role: "state directory", path: request.stateDir },
      { role: "cache directory", path: request.cacheDir },
    ]);
    const info = await engine.describe();
    const overlayRefusal =
      request.workspace === "overlay" ? await refuseOverlay(request, engine, info) : null;
    const problems = checkPreflight(
      {
        ...host,
        engine: null,
        images,
        runtimes: { asked: request.runtimes, known: info.runtimes },
        overlayRefusal,
      },
      { ...DEFAULT_PREFLIGHT_LIMITS, slots: request.slots, memoryBytesPerSlot: request.memoryBytesPerSlot },
    );
    const refusals = problems.filter(({ severity }) => severity === "refuse");
    const [first] = refusals;
    if (first) {
      const code = refusals.every(({ thing }) => thing === "image") ? "image-missing" : "preflight-failed";
      const text = refusals.map(({ message }) => message).join("\n  ");
      throw new RunnerError(code, text, { data: { problems }, hint: first.hint });
    }
    return problems.map(({ message, hint }) => `${message}; ${hint}`);
  } finally {
    await engine.close();
  }
}

/** Why a workspace that must be an overlay cannot be one, found out by trying; null where it can, or no image is there to try with. */
async function refuseOverlay(
  request: PreflightRequest,
  engine: Engine,
  { sharesFilesystem }: EngineInfo,
): Promise<string | null> {
  const { stateDir, cacheDir } = request;
  for (const name of request.images) {
    const image = await engine.inspectImage(name);
    if (image === null) continue;
    const labels = { [LABELS.state]: PROBE_STATE };
    const probe = { volumes: engine, sharesFilesystem, stateDir, cacheDir, image: image.id, labels };
    const verdict = await probeOverlay(probe);
    return verdict.usable ? null : verdict.why;
  }
  return null;
}
