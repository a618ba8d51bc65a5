import type { Caps, CapsMode } from "../model/caps.ts";
import type { DirtyMode } from "../model/run.ts";
import type { FileFilter, RetryPolicy } from "../model/task.ts";
import type { AgentsInput, ConfigInput, DefaultsInput } from "./config-schema.ts";

/** How to start one kind of agent. */
export interface AgentDefinition {
  readonly argv: readonly string[];
  readonly promptBy: "stdin" | "argument";
  readonly env: Readonly<Record<string, string>>;
}

/** What a task takes where it says nothing itself. */
export interface TaskDefaults {
  /** Null where none was named; then the only defined agent is taken. */
  readonly agent: string | null;
  readonly image: string;
  /** Null is the engine's own default. */
  readonly runtime: string | null;
  readonly timeoutMs: number;
  readonly retries: RetryPolicy;
  readonly caps: Caps;
  readonly capsMode: CapsMode;
  readonly env: Readonly<Record<string, string>>;
  readonly files: FileFilter;
  readonly protect: readonly string[];
  readonly verify: readonly string[];
}

/** The configuration of one repository, all defaults filled in. */
export interface ProjectConfig {
  /** The file it was read from, or null where there is none. */
  readonly source: string | null;
  readonly defaults: TaskDefaults;
  readonly agents: ReadonlyMap<string, AgentDefinition>;
  /** Names of environment variables whose values are kept out of output and logs. */
  readonly secrets: readonly string[];
  /** Attempts at once; null lets the machine decide. */
  readonly slots: number | null;
  /** Null: ask where somebody can be asked. */
  readonly dirty: DirtyMode | null;
}

const MIB = 1024 ** 2;

/** What holds in a repository without `bulkhead.yaml`. */
export const DEFAULT_CONFIG: ProjectConfig = {
  source: null,
  defaults: {
    agent: null,
    image: "bulkhead/agent:latest",
    runtime: null,
    timeoutMs: 30 * 60_000,
    retries: { max: 2, baseMs: 1000, factor: 1.5, maxDelayMs: 60_000, jitter: 0.5, on: [] },
    caps: {
      cpus: 1,
      memoryBytes: 1024 * MIB,
      swapBytes: 0,
      pids: 256,
      openFiles: 4096,
      diskBytes: null,
      tmpBytes: 256 * MIB,
      ioReadBytesPerSecond: null,
      ioWriteBytesPerSecond: null,
      ioReadOpsPerSecond: null,
      ioWriteOpsPerSecond: null,
    },
    capsMode: "report",
    env: {},
    files: { include: [], exclude: [], tests: "all", keywords: [], history: 1, extra: [] },
    protect: [],
    verify: [],
  },
  agents: new Map(),
  secrets: [],
  slots: null,
  dirty: null,
};

/** Fills a configuration file up with the defaults. */
export function normalizeConfig(input: ConfigInput, source: string): ProjectConfig {
  return {
    source,
    defaults: mergeDefaults(DEFAULT_CONFIG.defaults, input.defaults ?? {}),
    agents: mergeAgents(DEFAULT_CONFIG.agents, input.agents),
    secrets: input.secrets ?? [],
    slots: input.defaults?.slots ?? null,
    dirty: input.defaults?.dirty ?? null,
  };
}

/**
 * Puts one layer of settings (a file's defaults, or a task) over another, field by field. Lists replace those below, except `protect`:
 * a task can add protected paths, never take one away.
 */
export function mergeDefaults(
  base: TaskDefaults,
  over: Omit<DefaultsInput, "slots" | "dirty">,
): TaskDefaults {
  return {
    agent: over.agent ?? base.agent,
    image: over.image ?? base.image,
    runtime: over.runtime ?? base.runtime,
    timeoutMs: over.timeout ?? base.timeoutMs,
    retries: over.retries === undefined ? base.retries : mergeRetries(base.retries, over.retries),
    caps: over.caps === undefined ? base.caps : mergeCaps(base.caps, over.caps),
    capsMode: over.caps_mode ?? base.capsMode,
    env: over.env === undefined ? base.env : { ...base.env, ...over.env },
    files: over.files === undefined ? base.files : mergeFiles(base.files, over.files),
    protect: over.protect === undefined ? base.protect : [...new Set([...base.protect, ...over.protect])],
    verify: over.verify ?? base.verify,
  };
}

/** Definitions of a plan file over those of the project; a definition replaces its namesake as a whole. */
export function mergeAgents(
  base: ReadonlyMap<string, AgentDefinition>,
  over: AgentsInput | undefined,
): ReadonlyMap<string, AgentDefinition> {
  if (over === undefined) return base;
  const merged = new Map(base);
  for (const [name, { argv, prompt_by, env }] of Object.entries(over)) {
    merged.set(name, { argv, promptBy: prompt_by ?? "stdin", env: env ?? {} });
  }
  return merged;
}

function mergeRetries(base: RetryPolicy, over: NonNullable<DefaultsInput["retries"]>): RetryPolicy {
  const full: Exclude<typeof over, { max: number } & { base?: never }> = over;
  return {
    max: full.max ?? base.max,
    baseMs: full.base ?? base.baseMs,
    factor: full.factor ?? base.factor,
    maxDelayMs: full.max_delay ?? base.maxDelayMs,
    jitter: full.jitter ?? base.jitter,
    on: full.on ?? base.on,
  };
}

function mergeCaps(base: Caps, over: NonNullable<DefaultsInput["caps"]>): Caps {
  const none = { read_bytes: null, write_bytes: null, read_ops: null, write_ops: null };
  const io = over.io === null ? none : (over.io ?? {});
  return {
    cpus: over.cpus ?? base.cpus,
    memoryBytes: over.memory ?? base.memoryBytes,
    swapBytes: over.swap ?? base.swapBytes,
    pids: over.pids ?? base.pids,
    openFiles: over.open_files ?? base.openFiles,
    // Null is a value here ("none"), so that a task can lift a cap of the defaults.
    diskBytes: over.disk === undefined ? base.diskBytes : over.disk,
    tmpBytes: over.tmp ?? base.tmpBytes,
    ioReadBytesPerSecond: io.read_bytes === undefined ? base.ioReadBytesPerSecond : io.read_bytes,
    ioWriteBytesPerSecond: io.write_bytes === undefined ? base.ioWriteBytesPerSecond : io.write_bytes,
    ioReadOpsPerSecond: io.read_ops === undefined ? base.ioReadOpsPerSecond : io.read_ops,
    ioWriteOpsPerSecond: io.write_ops === undefined ? base.ioWriteOpsPerSecond : io.write_ops,
  };
}

function mergeFiles(base: FileFilter, over: NonNullable<DefaultsInput["files"]>): FileFilter {
  return {
    include: over.include ?? base.include,
    exclude: over.exclude ?? base.exclude,
    tests: over.tests ?? base.tests,
    keywords: over.keywords ?? base.keywords,
    history: over.history ?? base.history,
    extra: over.extra ?? base.extra,
  };
}
