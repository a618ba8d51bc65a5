/**
 * The user's repository, as the one place where bulkhead writes: opened for an apply or an undo that a person asked for.
 *
 * Everything here runs as the owner of the work tree, also where bulkhead runs as root, so that files come out as theirs (row P5) and
 * nothing is reached that they could not reach themselves. Their own git config counts (line ends, and filters as far as a call lets
 * them), as in their own checkout; hooks and fsmonitor do not, and no GIT_ variable of the calling shell does.
 *
 * LIMITATION: a `.gitattributes` in the patch can name a filter that the person has configured, which then gets the patch's files as
 * input, as after any checkout or pull of such a file. It cannot define a filter: no configuration comes from a patch.
 */
import { spawn } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { RunnerError } from "../../model/runner-error.ts";
import { locateRepository } from "../repository-state.ts";

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface UserRepository {
  /** Top level of the work tree. */
  readonly top: string;
  /** Git directory of this work tree (of a linked one, its own). */
  readonly gitDir: string;
  readonly indexPath: string;
  /** Whom new files and directories belong to; null where that is this process. */
  readonly owner: Owner | null;
  readonly objectFormat: "sha1" | "sha256";
  /** Names of the filter drivers that the person's config gives a program. */
  readonly filters: readonly string[];
  git(args: readonly string[], options?: UserGitOptions): Promise<UserOutput>;
  /** As `git`, but any exit code besides 0 throws. */
  gitBytes(args: readonly string[], options?: UserGitOptions): Promise<Buffer>;
  run(command: string, args: readonly string[], options?: UserGitOptions): Promise<UserOutput>;
}

export interface UserGitOptions {
  readonly input?: Buffer | NodeJS.ReadableStream;
  readonly indexFile?: string;
  /**
   * The one filter driver that may run; null for none at all, all of them where absent. Which attribute names a driver is also up to the
   * `.gitattributes` of a patch, so every call that converts content of a patch MUST set this (attribute-filters.ts).
   */
  readonly filter?: string | null;
  /** Another work tree than the person's. */
  readonly workTree?: string;
}

export interface UserOutput {
  readonly exitCode: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

const CONFIG = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.safecrlf=false",
  "core.quotePath=false",
  "submodule.recurse=false",
  "diff.ignoreSubmodules=all",
  "gc.auto=0",
  "maintenance.auto=false",
  "protocol.allow=never",
].flatMap((entry) => ["-c", entry]);

/** Opens the repository that holds `path`. Throws `not-a-repository` or `repository-refused`. */
export async function openUserRepository(path: string): Promise<UserRepository> {
  const { top, objectFormat } = await locateRepository(path);
  const owner = await chooseOwner(top);
  const env = await environment(owner);
  const filters: string[] = [];

  function run(command: string, args: readonly string[], options: UserGitOptions = {}): Promise<UserOutput> {
    const child = spawn(command, args, {
      cwd: top,
      env: {
        ...env,
        ...(options.indexFile === undefined ? {} : { GIT_INDEX_FILE: options.indexFile }),
        ...(options.filter === undefined
          ? {}
          : switchedOff(filters.filter((name) => name !== options.filter))),
      },
      stdio: ["pipe", "pipe", "pipe"],
      ...(owner ?? {}),
    });
    const stdout: Buffer[] = [];
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => {
      if (stderr.length < 16_384) stderr += chunk.toString("utf8");
    });
    // A process that ends before it has read its input closes the pipe; its exit code tells why.
    child.stdin.on("error", () => undefined);
    if (options.input && !Buffer.isBuffer(options.input)) options.input.pipe(child.stdin);
    else child.stdin.end(options.input);
    return new Promise((resolve, reject) => {
      child.once("error", (cause) => {
        reject(new RunnerError("git-failed", `${command} could not be started in ${top}`, { cause }));
      });
      child.once("close", (exitCode) => resolve({ exitCode, stdout: Buffer.concat(stdout), stderr }));
    });
  }

  function git(args: readonly string[], options?: UserGitOptions): Promise<UserOutput> {
    const where = options?.workTree === undefined ? [] : [`--work-tree=${options.workTree}`];
    return run("git", [...CONFIG, "--literal-pathspecs", "-C", top, ...where, ...args], options);
  }

  async function gitBytes(args: readonly string[], options?: UserGitOptions): Promise<Buffer> {
    const output = await git(args, options);
    if (output.exitCode === 0) return output.stdout;
    const reason = output.stderr.trim().split("\n").slice(0, 4).join("; ");
    throw new RunnerError(
      "git-failed",
      `git ${args[0] ?? ""} in ${top} ended with exit code ${output.exitCode}: ${reason}`,
      {
        data: { args: args.slice(0, 8), exitCode: output.exitCode },
      },
    );
  }

  async function gitPath(args: readonly string[]): Promise<string> {
    return (await gitBytes(["rev-parse", "--path-format=absolute", ...args]))
      .toString("utf8")
      .replace(/\n$/, "");
  }

  const [gitDir, indexPath] = await Promise.all([gitPath(["--git-dir"]), gitPath(["--git-path", "index"])]);
  filters.push(...filterNames(await gitBytes(["config", "--list", "-z"])));
  return { top, gitDir, indexPath, owner, objectFormat, filters, git, gitBytes, run };
}

function filterNames(config: Buffer): Set<string> {
  const names = new Set<string>();
  for (const entry of config.toString("utf8").split("\0")) {
    const name = /^filter\.([^\n]+)\.(?:clean|smudge|process)\n/.exec(entry)?.[1];
    if (name !== undefined) names.add(name);
  }
  return names;
}

/** Config by environment: unlike `-c`, it takes any name a driver may have. */
function switchedOff(filters: readonly string[]): Record<string, string> {
  const entries = filters.flatMap((name) => [
    ...["clean", "smudge", "process"].map((key) => [`filter.${name}.${key}`, ""]),
    [`filter.${name}.required`, "false"],
  ]);
  const environment: Record<string, string> = { GIT_CONFIG_COUNT: String(entries.length) };
  for (const [index, [key = "", value = ""]] of entries.entries()) {
    environment[`GIT_CONFIG_KEY_${index}`] = key;
    environment[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return environment;
}

/** HEAD's commit and tree, or null on an unborn branch. */
export async function readHeadCommit(
  repository: UserRepository,
): Promise<{ readonly commit: string; readonly tree: string } | null> {
  const output = await repository.git(["rev-parse", "--quiet", "HEAD^{commit}", "HEAD^{tree}"]);
  const [commit, tree] = output.stdout.toString("latin1").split("\n");
  return output.exitCode === 0 && commit && tree ? { commit, tree } : null;
}

async function chooseOwner(top: string): Promise<Owner | null> {
  const { uid, gid } = await stat(top);
  return process.geteuid?.() === 0 && uid !== 0 ? { uid, gid } : null;
}

/** The caller's environment less git's own variables; the owner's HOME where that is somebody else. */
async function environment(owner: Owner | null): Promise<Record<string, string>> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && !name.startsWith("GIT_")) env[name] = value;
  }
  if (owner !== null) {
    delete env["XDG_CONFIG_HOME"];
    env["HOME"] = (await homeOf(owner.uid)) ?? "/nonexistent";
  }
  return {
    ...env,
    LC_ALL: "C",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_REPLACE_OBJECTS: "1",
  };
}

async function homeOf(uid: number): Promise<string | null> {
  const lines = (await readFile("/etc/passwd", "utf8").catch(() => ""))
    .split("\n")
    .map((line) => line.split(":"));
  return lines.find((fields) => fields[2] === String(uid))?.[5] ?? null;
}

/** Where an apply puts files before they take their places: next to the index, or in the work tree where that is another file system. */
export async function stagingDirectory(repository: UserRepository, id: string): Promise<string> {
  const [tree, git] = await Promise.all([stat(repository.top), stat(repository.gitDir)]);
  const name = `bulkhead-apply-${id}`;
  return tree.dev === git.dev ? join(repository.gitDir, name) : join(repository.top, `.${name}`);
}
