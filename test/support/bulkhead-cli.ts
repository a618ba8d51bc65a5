import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A private home for one test: state, cache, and a place for repositories. `dispose` removes all of it. */
export interface Rig {
  readonly root: string;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly env: NodeJS.ProcessEnv;
  /** Runs the built command line to its end. */
  run(args: readonly string[], options?: RunOptions): Promise<CliResult>;
  dispose(): void;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly input?: string;
  readonly env?: NodeJS.ProcessEnv;
}

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The built CLI: tests run what users run. */
export const CLI = new URL("../../dist/cli/main.js", import.meta.url).pathname;

/** Makes a rig. `base` chooses another parent directory (a short one, a tmpfs). */
export function createRig(base: string = tmpdir()): Rig {
  const root = mkdtempSync(join(base, "bh-"));
  const stateDir = join(root, "state");
  const cacheDir = join(root, "cache");
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    BULKHEAD_STATE_DIR: stateDir,
    BULKHEAD_CACHE_DIR: cacheDir,
    NO_COLOR: "1",
  };
  return {
    root,
    stateDir,
    cacheDir,
    env,
    run: (args, options = {}) =>
      new Promise((resolve, reject) => {
        const child = spawn(process.execPath, [CLI, ...args], {
          cwd: options.cwd ?? root,
          env: { ...env, ...options.env },
          stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
        });
        let stdout = "";
        let stderr = "";
        child.stdout?.setEncoding("utf8").on("data", (text: string) => {
          stdout += text;
        });
        child.stderr?.setEncoding("utf8").on("data", (text: string) => {
          stderr += text;
        });
        child.stdin?.end(options.input);
        child.once("error", reject);
        child.once("close", (code) => resolve({ code, stdout, stderr }));
      }),
    dispose: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** Makes a git repository with the given files and one commit. */
export function createRepository(path: string, files: Readonly<Record<string, string>>): string {
  spawnSync("mkdir", ["-p", path]);
  git(path, "init", "-q", "-b", "main");
  for (const [name, content] of Object.entries(files)) {
    spawnSync("mkdir", ["-p", join(path, name, "..")]);
    spawnSync("tee", [join(path, name)], { input: content });
  }
  commitAll(path, "start");
  return path;
}

/** Commits everything in the work tree. */
export function commitAll(path: string, message: string): void {
  git(path, "add", "-A");
  git(path, "-c", "user.name=tester", "-c", "user.email=tester@example.org", "commit", "-qm", message);
}

/** Runs git in a repository; its standard output, or an Error with what it said. */
export function git(path: string, ...args: string[]): string {
  const done = spawnSync("git", args, { cwd: path, encoding: "utf8" });
  if (done.status !== 0) throw new Error(`git ${args.join(" ")}: ${done.stderr}`);
  return done.stdout;
}
