/** What starting a run needs: the engine, the preflight, and how the supervisor is launched. */
import { availableParallelism } from "node:os";
import { RunnerError } from "../model/runner-error.ts";
import { checkPreflight, DEFAULT_PREFLIGHT_LIMITS } from "../policy/preflight.ts";
import { measureHost } from "../sandbox/host-measures.ts";
import {
  type PreflightRequest,
  type RunPlanOptions,
  type StartedRun,
  startPlan,
  supervisorProgram,
} from "../supervisor/run-plan.ts";
import { needEngine, openEngine } from "./compose-engine.ts";
import type { CliContext } from "./context.ts";
import { packageVersion } from "./version.ts";

/** Starts a plan from a program or a command line. */
export function startRun(
  context: Pick<CliContext, "cwd" | "env" | "stateDir" | "cacheDir">,
  options: RunPlanOptions,
): Promise<StartedRun> {
  return startPlan(
    {
      version: packageVersion(),
      cwd: context.cwd,
      env: context.env,
      stateDir: context.stateDir,
      cacheDir: context.cacheDir,
      hostCpus: availableParallelism(),
      launch: (stateDir, cacheDir) => ({
        argv: [process.execPath, supervisorProgram(import.meta.url), "supervise"],
        env: { ...context.env, BULKHEAD_STATE_DIR: stateDir, BULKHEAD_CACHE_DIR: cacheDir },
      }),
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
    const problems = checkPreflight(
      { ...host, engine: null, images },
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
