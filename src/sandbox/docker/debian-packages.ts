import { spawn } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { boundedLines } from "./bounded-lines.ts";

/** Another apt (unattended upgrades, a second setup) may hold the lock; wait for it instead of failing. */
const LOCK_SECONDS = 300;

/** The folders system programs live in, also where a user's PATH leaves sbin out. */
const SYSTEM_PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Absolute path of a program on the PATH or in the system folders, else null. */
export function findProgram(name: string, path: string | undefined = process.env["PATH"]): string | null {
  for (const folder of [...(path ?? "").split(delimiter), ...SYSTEM_PATH]) {
    if (folder === "") continue;
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not here, or not executable for us: look on.
    }
  }
  return null;
}

/** The environment for system programs: nothing of the caller's but how to reach a network. */
export function systemEnv(): Record<string, string> {
  const kept = ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
  const proxies = kept.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    ...Object.fromEntries(proxies),
    PATH: SYSTEM_PATH.join(delimiter),
    HOME: "/root",
    LANG: "C.UTF-8",
    DEBIAN_FRONTEND: "noninteractive",
  };
}

/** True where packages can be installed: a Debian-like system, and we are root. */
export function canInstallPackages(): boolean {
  return process.getuid?.() === 0 && existsSync("/etc/debian_version") && findProgram("apt-get") !== null;
}

/** Installs packages with apt. A failing list refresh (one dead source among many) is not yet a reason to give up. */
export async function installDebianPackages(packages: readonly string[]): Promise<CommandOutcome> {
  const options = ["-q", "-y", "-o", `DPkg::Lock::Timeout=${LOCK_SECONDS}`];
  await runSystem("apt-get", [...options, "update"]);
  return runSystem("apt-get", [...options, "install", "--no-install-recommends", ...packages]);
}

export interface CommandOutcome {
  /** Exit code; null where the program could not be started or was ended by a signal. */
  readonly exitCode: number | null;
  /** The last lines of what it said. */
  readonly tail: readonly string[];
}

/** Runs a system program without a shell and without standard input. */
export function runSystem(program: string, argv: readonly string[]): Promise<CommandOutcome> {
  return new Promise((resolve) => {
    const lines = boundedLines(20);
    const child = spawn(program, argv, { env: systemEnv(), stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.on("data", lines.push);
    child.stderr.on("data", lines.push);
    child.once("error", (cause) => resolve({ exitCode: null, tail: [cause.message] }));
    child.once("close", (exitCode) => resolve({ exitCode, tail: lines.tail() }));
  });
}
