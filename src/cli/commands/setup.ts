import type { Command } from "commander";
import { RunnerError } from "../../model/runner-error.ts";
import {
  type EngineSearch,
  explainSearch,
  type ImageReady,
  type ImageRequest,
  type Report,
} from "../../sandbox/engine-setup.ts";
import { ensureToolbox } from "../../sandbox/toolbox.ts";
import type { CliContext } from "../context.ts";

/** The image that tasks run in unless they name one. */
export const DEFAULT_IMAGE = "bulkhead/agent:latest";

/** Where the engine that setup can start listens. */
const SYSTEM_SOCKET = "unix:///var/run/docker.sock";

/** What setup needs of the drivers; compose.ts passes the real ones. */
export interface SetupDeps {
  findEngine(env: CliContext["env"], options: { explicit?: string }): Promise<EngineSearch>;
  startEngine(options: { report: Report }): Promise<{ endpoint: string }>;
  ensureImage(request: ImageRequest): Promise<ImageReady>;
}

interface SetupOptions {
  readonly engine?: string;
  readonly image: string;
  readonly base?: string;
  readonly json?: boolean;
}

/** `bulkhead setup`: from a bare machine to one that can run tasks. Safe to repeat. */
export function registerSetup(program: Command, context: CliContext, deps: SetupDeps): void {
  program
    .command("setup")
    .description("Find or start a container engine, build the agents' image, put the tools in place.")
    .option("--engine <endpoint>", "engine to use: unix:///path.sock, tcp://host:port, ssh://user@host")
    .option("--image <tag>", "name of the image to build", DEFAULT_IMAGE)
    .option("--base <image>", "image to build on, instead of Debian")
    .option("--json", "print one JSON object at the end, progress on standard error")
    .addHelpText(
      "after",
      "\nExamples:\n  bulkhead setup\n  bulkhead setup --engine unix:///run/user/1000/podman/podman.sock\n  bulkhead setup --base my-company/debian:12",
    )
    .action(async (options: SetupOptions) => {
      await setUp(context, deps, options);
    });
}

async function setUp(context: CliContext, deps: SetupDeps, options: SetupOptions): Promise<void> {
  const report: Report = (line) => (options.json ? context.stderr : context.stdout).write(`${line}\n`);
  const engine = await needEngine(context, deps, options.engine, report);
  const image = await deps.ensureImage({
    endpoint: engine.endpoint,
    certPath: engine.certPath,
    tag: options.image,
    baseImage: options.base ?? null,
    report,
  });
  const toolbox = await ensureToolbox({ cacheDir: context.cacheDir });
  report(`toolbox: ${toolbox.dir}`);
  if (options.json) context.stdout.write(`${JSON.stringify({ engine: engine.endpoint, image, toolbox })}\n`);
  else report("ready: try `bulkhead doctor`, then `bulkhead run`");
}

/** An engine that answers; starts the system's own only where the person has named no other. */
async function needEngine(
  context: CliContext,
  deps: SetupDeps,
  explicit: string | undefined,
  report: Report,
): Promise<{ endpoint: string; certPath: string | null }> {
  const search = await deps.findEngine(context.env, explicit === undefined ? {} : { explicit });
  if (search.endpoint !== null) {
    report(`engine: ${search.endpoint} (${search.why}), version ${search.version}`);
    return search;
  }
  if (search.named !== null && search.named !== SYSTEM_SOCKET) {
    throw new RunnerError("engine-unreachable", `the engine at ${search.named} does not answer`, {
      data: { tried: search.tried },
      hint: explainSearch(search).at(-1) ?? "start it, or name another with --engine",
    });
  }
  report("engine: none answers");
  // Says also why: a socket that only its group may use is a case for `usermod`, not for a new engine.
  for (const line of explainSearch(search)) report(`engine: ${line}`);
  return { endpoint: (await deps.startEngine({ report })).endpoint, certPath: null };
}
