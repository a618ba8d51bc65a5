/**
 * Runs git as plumbing, with nothing of the person's or the repository's configuration in reach.
 *
 * Theory of operation: every call gets an environment of its own (no HOME, no system or global config, no replace objects, no
 * prompts, no optional locks) and `-c` options that switch off what a repository's config could run. That is enough for a
 * directory bulkhead made itself (its object store). It is NOT enough for a tree an attempt wrote to: no command here may be
 * given such a tree as work tree or git directory, since nested repositories and filters run planted programs all the same.
 *
 * Plain `spawn` and not a wrapper library: several of these lie on the path of each attempt.
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { RunnerError } from "../model/runner-error.ts";

export interface GitOptions {
  readonly input?: string | Buffer | Uint8Array;
  /** Added to the scrubbed environment, e.g. GIT_INDEX_FILE. */
  readonly env?: Readonly<Record<string, string>>;
  /** Instead of the scrubbed environment. Only for looking at the person's own repository (repository-state.ts). */
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Bytes of stdout that are kept before the process is killed. */
  readonly maxBuffer?: number;
  /** Lets `fetch` read a local path; every protocol is refused otherwise. */
  readonly allowFileProtocol?: boolean;
  /** File mode mask of what git creates; the process's own where absent. */
  readonly umask?: string;
}

export interface GitOutput {
  readonly stdout: Buffer;
  readonly stderr: string;
  readonly exitCode: number;
}

const DEFAULT_MAX_BUFFER = 1024 ** 3;
const MAX_STDERR_CHARS = 64 * 1024;
const MESSAGE_LINES = 4;

/** The `-c` options of every call. Order matters to git only where a key repeats. */
const CONFIG: readonly string[] = [
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "core.attributesFile=/dev/null",
  "core.excludesFile=/dev/null",
  "core.untrackedCache=false",
  "core.quotePath=false",
  "submodule.recurse=false",
  "diff.ignoreSubmodules=all",
  "gc.auto=0",
  "maintenance.auto=false",
  "safe.bareRepository=explicit",
];

/** Environment of every git process. Only PATH comes from the outside. */
export function gitEnvironment(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
    HOME: "/nonexistent",
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_REPLACE_OBJECTS: "1",
    ...extra,
  };
}

/** The `-c key=value` arguments of every git process. */
export function gitConfigArguments(allowFileProtocol = false): string[] {
  const protocols = allowFileProtocol
    ? ["protocol.allow=never", "protocol.file.allow=always"]
    : ["protocol.allow=never"];
  return [...CONFIG, ...protocols].flatMap((entry) => ["-c", entry]);
}

/** Starts git with its three streams open, for output too large to hold. The caller reads it to the end. */
export function spawnGit(gitDir: string | null, args: readonly string[], options: GitOptions = {}): GitChild {
  const argv = [
    ...gitConfigArguments(options.allowFileProtocol),
    ...(gitDir === null ? [] : [`--git-dir=${gitDir}`]),
    ...args,
  ];
  const spawnOptions: SpawnOptions = {
    cwd: options.cwd ?? "/",
    env: options.environment ? { ...options.environment, ...options.env } : gitEnvironment(options.env),
    stdio: ["pipe", "pipe", "pipe"],
  };
  // Node cannot set the mask of one child, and that of the process is everybody's.
  const child =
    options.umask === undefined
      ? spawn("git", argv, spawnOptions)
      : spawn("sh", ["-c", 'umask "$0" && exec git "$@"', options.umask, ...argv], spawnOptions);
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) throw new RunnerError("internal", "git was started without its streams");
  // A git that ends before it has read its input closes the pipe; its exit code tells why.
  stdin.on("error", () => undefined);
  const ended = Promise.withResolvers<number>();
  child.once("error", (cause) => ended.reject(cannotStart(cause, options.cwd)));
  child.once("close", (code, signal) => {
    if (code !== null) ended.resolve(code);
    else {
      ended.reject(
        new RunnerError("git-failed", `git ${args[0] ?? ""} was ended by ${signal ?? "a signal"}`, {
          data: { args, signal },
        }),
      );
    }
  });
  // The rejection belongs to whoever awaits `ended`; one that reads the streams first must not lose the process to it.
  ended.promise.catch(() => undefined);
  return { process: child, stdin, stdout, stderr, ended: ended.promise };
}

export interface GitChild {
  readonly process: ChildProcess;
  readonly stdin: NodeJS.WritableStream;
  readonly stdout: NodeJS.ReadableStream;
  readonly stderr: NodeJS.ReadableStream;
  /** Exit code, once the streams are closed too. Rejects where git could not start or died of a signal. */
  readonly ended: Promise<number>;
}

/** Runs git to its end. An exit code other than 0 is a value; only a git that cannot run at all throws. */
export async function runGit(
  gitDir: string | null,
  args: readonly string[],
  options: GitOptions = {},
): Promise<GitOutput> {
  const child = spawnGit(gitDir, args, options);
  const maxBytes = options.maxBuffer ?? DEFAULT_MAX_BUFFER;
  const chunks: Buffer[] = [];
  let bytes = 0;
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBytes) child.process.kill("SIGKILL");
    else chunks.push(chunk);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    if (stderr.length < MAX_STDERR_CHARS) stderr += chunk.toString("utf8");
  });
  child.stdin.end(options.input ?? "");
  const tooMuch = () =>
    new RunnerError("git-failed", `git ${args[0] ?? ""} printed more than ${maxBytes} bytes`, {
      data: { args, maxBytes },
    });
  const exitCode = await child.ended.catch((cause: unknown) => {
    throw bytes > maxBytes ? tooMuch() : cause;
  });
  if (bytes > maxBytes) throw tooMuch();
  return { stdout: Buffer.concat(chunks), stderr, exitCode };
}

/** Runs git and returns what it printed. Any exit code but 0 throws `git-failed`. */
export async function gitBytes(
  gitDir: string | null,
  args: readonly string[],
  options: GitOptions = {},
): Promise<Buffer> {
  const output = await runGit(gitDir, args, options);
  if (output.exitCode !== 0) throw gitFailed(args, output, gitDir);
  return output.stdout;
}

/** Runs git and returns what it printed as trimmed text. Any exit code but 0 throws `git-failed`. */
export async function gitText(
  gitDir: string | null,
  args: readonly string[],
  options: GitOptions = {},
): Promise<string> {
  return (await gitBytes(gitDir, args, options)).toString("utf8").trim();
}

/** The error for a git that ended with a code nobody expected. */
export function gitFailed(
  args: readonly string[],
  output: Pick<GitOutput, "stderr" | "exitCode">,
  gitDir: string | null,
): RunnerError {
  const lines = output.stderr.trim().split("\n").slice(0, MESSAGE_LINES).join("; ");
  const command = args.slice(0, 6).join(" ");
  return new RunnerError("git-failed", `git ${command} ended with exit code ${output.exitCode}: ${lines}`, {
    data: { args, exitCode: output.exitCode, stderr: output.stderr, gitDir },
  });
}

function cannotStart(cause: Error, cwd: string | undefined): RunnerError {
  return new RunnerError("git-failed", `git could not be started: ${cause.message}`, {
    cause,
    data: { cwd },
    hint: "Install git 2.38 or newer and see that it is on the PATH.",
  });
}
