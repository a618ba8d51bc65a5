import type { Caps, CapsMode } from "./caps.ts";
import type { FailureReason } from "./failure.ts";
import type { TaskId } from "./ids.ts";

/** What runs inside the container. `argv` is exec'd as it is; nothing of it passes a shell unless it names one. */
export interface TaskCommand {
  readonly argv: readonly string[];
  /** Text given on standard input, or null for an empty one. Never part of argv or env. */
  readonly stdin: string | null;
  /** Which agent definition it came from; null for `run:`. */
  readonly agent: string | null;
}

export interface RetryPolicy {
  /** Retries after the first attempt. */
  readonly max: number;
  readonly baseMs: number;
  readonly factor: number;
  readonly maxDelayMs: number;
  /** Share of the delay that is random, 0 to 1. */
  readonly jitter: number;
  /** Reasons retried besides those whose fault is `host`. */
  readonly on: readonly FailureReason[];
}

/** Which files of the commit go in (row A2). Patterns use gitignore syntax, relative to the repository root. */
export interface FileFilter {
  /** Empty means all tracked files. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** `matching`: of the test files only those whose path holds one of the task's keywords, plus shared fixtures. */
  readonly tests: "all" | "matching";
  readonly keywords: readonly string[];
  /** Commits of history inside the container: 1 is the base commit alone, 0 all of it. */
  readonly history: number;
  /** Ignored or untracked files of the working tree to bring in (gitignore syntax); none unless listed (row P4). */
  readonly extra: readonly string[];
}

/** Structured context, written to `context.json` in the door directory (row A11). */
export interface TaskContextSpec {
  readonly files: readonly string[];
  readonly acceptance: readonly string[];
  readonly prohibited: readonly string[];
  readonly notes: string | null;
}

/** One validated node of the DAG, all defaults filled in. Serialisable: it is logged with the run. */
export interface TaskSpec {
  readonly id: TaskId;
  /** A person's name for it; the id where none was given. */
  readonly title: string;
  readonly command: TaskCommand;
  /** The text of `prompt:` or `--task`, for people and context.json. */
  readonly prompt: string | null;
  /** A lower number goes first. */
  readonly priority: number;
  readonly dependsOn: readonly TaskId[];
  readonly timeoutMs: number;
  readonly retries: RetryPolicy;
  readonly caps: Caps;
  readonly capsMode: CapsMode;
  /** Only these and a fixed base set exist inside (row A4). */
  readonly env: Readonly<Record<string, string>>;
  readonly files: FileFilter;
  readonly context: TaskContextSpec;
  /** gitignore-style patterns whose change turns the patch into a proposal (row A19). */
  readonly protect: readonly string[];
  /** Commands that prove the patch; kept with the task, run by review. */
  readonly verify: readonly string[];
  readonly image: string;
  /** OCI runtime by the name the engine has for it (`crun`, `runsc`, ...); null takes the engine's default. */
  readonly runtime: string | null;
  /** The file (and index) the task came from, for messages. */
  readonly source: string;
}

/** A validated plan: acyclic, ids unique, every dependency known. In the order of the files. */
export interface Plan {
  readonly tasks: readonly TaskSpec[];
}
