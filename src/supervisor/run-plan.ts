/**
 * From a plan a person wrote to a run that goes on: the library's `runPlan`, which the command line is built on. It reads and checks
 * everything on the caller's side (repository, configuration, plan, engine, preflight), then hands a finished submission to the
 * supervisor of the state directory.
 */
import { randomInt } from "node:crypto";
import { join } from "node:path";
import type { RunId } from "../model/ids.ts";
import type { DirtyMode, RunSettings } from "../model/run.ts";
import { RunnerError } from "../model/runner-error.ts";
import type { Plan } from "../model/task.ts";
import { loadConfig } from "../plan/load-config.ts";
import { type LoadedPlan, loadPlan } from "../plan/load-plan.ts";
import { parsePlan } from "../plan/parse-plan.ts";
import { formatProblem, type PlanProblem } from "../plan/plan-problem.ts";
import type { ProjectConfig } from "../plan/project-config.ts";
import type { Result } from "../util/result.ts";
import { readRepositoryState } from "../workspace/repository-state.ts";
import type { UncommittedFiles } from "../workspace/work-tree-changes.ts";
import { chooseStart } from "./choose-start.ts";
import { reachSupervisor, type SupervisorLaunch } from "./reach-supervisor.ts";
import { type RunHandle, watchHandle } from "./run-handle.ts";

export interface RunPlanOptions {
  /** Files or folders to read tasks from (`-` is `stdin`), or the tasks themselves as a plan file would hold them. */
  readonly plan: readonly string[] | { readonly tasks: readonly unknown[] };
  /** Any directory inside the repository; the current one where absent. */
  readonly repository?: string;
  readonly slots?: number;
  readonly engine?: string;
  readonly workspace?: "auto" | "overlay" | "copy";
  /** OCI runtime of every task, whatever the plan says. */
  readonly runtime?: string;
  /** What becomes of uncommitted changes; `defaults.dirty` of the configuration where absent. */
  readonly dirty?: DirtyMode;
  /** Asked once where neither says and tracked files have changes; without it they are ignored. */
  readonly askDirty?: (files: UncommittedFiles) => Promise<DirtyMode>;
  readonly stateDir?: string;
  readonly cacheDir?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly stdin?: NodeJS.ReadableStream;
  /** Whether `messages()` carries live output and resource samples besides events. */
  readonly output?: boolean;
  readonly samples?: boolean;
  /** Skips the checks of disk, memory, engine and images that a run begins with. */
  readonly skipPreflight?: boolean;
}

/** What `runPlan` needs of its surroundings; `compose.ts` gives it. */
export interface RunPlanDeps {
  readonly version: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly hostCpus: number;
  launch(stateDir: string, cacheDir: string): SupervisorLaunch;
  /** Endpoint of an engine that answers; throws RunnerError `engine-unreachable` saying what was tried. */
  findEngine(explicit: string | undefined): Promise<string>;
  /** Throws RunnerError `preflight-failed` or `image-missing`. Returns warnings. */
  preflight(check: PreflightRequest): Promise<readonly string[]>;
}

export interface PreflightRequest {
  readonly engine: string;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly images: readonly string[];
  /** OCI runtimes that tasks name. */
  readonly runtimes: readonly string[];
  readonly workspace: RunSettings["workspaceDriver"];
  readonly slots: number;
  /** Memory cap of the largest task. */
  readonly memoryBytesPerSlot: number;
}

/** A started run, with what a person should know about it. */
export interface StartedRun extends RunHandle {
  readonly plan: Plan;
  readonly settings: Omit<RunSettings, "runId">;
  readonly warnings: readonly string[];
}

/** Starts a run. Throws RunnerError (`plan-invalid` carries `problems`) before anything was started. */
export async function startPlan(deps: RunPlanDeps, options: RunPlanOptions): Promise<StartedRun> {
  const stateDir = options.stateDir ?? deps.stateDir;
  const cacheDir = options.cacheDir ?? deps.cacheDir;
  const repository = await readRepositoryState(options.repository ?? deps.cwd);
  const {
    config,
    plan: written,
    sources,
  } = await readPlan(repository.path, {
    plan: options.plan,
    cwd: deps.cwd,
    hostCpus: deps.hostCpus,
    ...(options.stdin ? { stdin: options.stdin } : {}),
  });
  const plan = withRuntime(written, options.runtime);
  const engine = await deps.findEngine(options.engine);
  const slots = options.slots ?? config.slots ?? defaultSlots(deps.hostCpus);
  const workspace = options.workspace ?? "auto";
  const warnings = [...repository.warnings];
  const start = await chooseStart({ ...options, dirty: options.dirty ?? config.dirty }, repository, cacheDir);
  warnings.push(...start.warnings);
  if (!options.skipPreflight) {
    const busy = Math.max(1, Math.min(slots, plan.tasks.length));
    const memoryBytesPerSlot = plan.tasks.reduce((most, task) => Math.max(most, task.caps.memoryBytes), 0);
    const images = [...new Set(plan.tasks.map((task) => task.image))];
    const runtimes = [...new Set(plan.tasks.flatMap(({ runtime }) => runtime ?? []))];
    const check = {
      engine,
      stateDir,
      cacheDir,
      images,
      runtimes,
      workspace,
      slots: busy,
      memoryBytesPerSlot,
    };
    warnings.push(...(await deps.preflight(check)));
  }
  const settings: Omit<RunSettings, "runId"> = {
    repository: repository.path,
    baseCommit: start.baseCommit,
    ...(start.baseCommit === repository.headCommit ? {} : { headCommit: repository.headCommit }),
    baseRef: repository.ref,
    slots,
    seed: randomInt(2 ** 31),
    engine,
    workspaceDriver: workspace,
    sources,
    dirty: start.isDirty,
  };
  const env = { ...deps.env, ...options.env };
  const client = await reachSupervisor(stateDir, deps.version, deps.launch(stateDir, cacheDir));
  const secrets = config.secrets.map((name) => env[name] ?? "").filter((value) => value !== "");
  const submitted = client.call("submit", { settings, tasks: plan.tasks, secrets });
  // A connection that nobody watches would keep this process, and the supervisor, waiting for each other.
  submitted.catch(() => client.close());
  const { run_id: runId } = (await submitted) as { run_id: RunId };
  const handle = watchHandle(client, runId, {
    output: options.output ?? false,
    samples: options.samples ?? false,
  });
  return Object.assign(handle, { plan, settings, warnings });
}

interface ReadRequest extends Pick<RunPlanOptions, "plan" | "stdin"> {
  readonly cwd: string;
  readonly hostCpus?: number;
}

/** Reads the repository's configuration and the plan. Throws RunnerError `config-invalid` or `plan-invalid` with every problem. */
export async function readPlan(
  repository: string,
  request: ReadRequest,
): Promise<LoadedPlan & { readonly config: ProjectConfig }> {
  const config = orThrow("config-invalid", await loadConfig(repository));
  const { plan, cwd, stdin, hostCpus } = request;
  const options = { config, ...(hostCpus === undefined ? {} : { hostCpus }) };
  if (isInputs(plan)) {
    const from = stdin ? { stdin } : {};
    return { config, ...orThrow("plan-invalid", await loadPlan({ ...options, ...from, cwd, inputs: plan })) };
  }
  return { config, plan: orThrow("plan-invalid", parsePlan(plan, options)), sources: ["<plan>"] };
}

function withRuntime(plan: Plan, runtime: string | undefined): Plan {
  return runtime === undefined ? plan : { tasks: plan.tasks.map((task) => ({ ...task, runtime })) };
}

/** Agents mostly wait for a model, so more of them than cores keep the cores busy. */
function defaultSlots(cpus: number): number {
  return Math.max(2, cpus * 2);
}

function isInputs(plan: RunPlanOptions["plan"]): plan is readonly string[] {
  return Array.isArray(plan);
}

function orThrow<T>(code: "plan-invalid" | "config-invalid", result: Result<T, readonly PlanProblem[]>): T {
  if (result.ok) return result.value;
  const lines = result.error.map(formatProblem);
  const subject = code === "plan-invalid" ? "the plan" : "the configuration";
  const count = lines.length === 1 ? "1 problem" : `${lines.length} problems`;
  throw new RunnerError(code, `${subject} has ${count}:\n  ${lines.join("\n  ")}`, {
    data: { problems: result.error },
  });
}

/** Where the supervisor's program is, next to this file's own form (source or built). */
export function supervisorProgram(moduleUrl: string): string {
  const extension = moduleUrl.endsWith(".ts") ? "ts" : "js";
  return join(new URL("..", moduleUrl).pathname, "cli", `main.${extension}`);
}
