/**
 * Theory of operation. Gets the system's own Docker engine running, from whatever state the machine is in: not installed,
 * installed but stopped, or dead with its files left behind. The steps: ping (a living engine is never touched) → install if
 * there is no dockerd → ping again, since a package may start its service → wait if a dockerd is just coming up → remove
 * leftovers → start through systemd where that runs, else as a detached process → wait for the ping within a bound.
 *
 * Containers of an engine that died are that engine's business: the new dockerd finds them, ends or adopts them and unmounts
 * their file systems when it starts. Bulkhead finds its own among them by label afterwards.
 */
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readSync, statSync, truncateSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { RunnerError } from "../../model/runner-error.ts";
import type { Report } from "../engine-setup.ts";
import {
  canInstallPackages,
  findProgram,
  installDebianPackages,
  runSystem,
  systemEnv,
} from "./debian-packages.ts";
import { type EngineLayout, livingPid, removeEngineLeftovers, SYSTEM_ENGINE } from "./engine-leftovers.ts";
import { pingEngine } from "./find-engine.ts";

/** After a crash dockerd first ends the containers it finds, with their 10 s of grace. */
const READY_LIMIT_MS = 120_000;
const MAX_LOG_BYTES = 16 * 1024 * 1024;
const INSTALL_HINT = "apt-get update && apt-get install --no-install-recommends docker.io iptables";

export interface StartEngineOptions {
  readonly report: Report;
  /** For a second engine beside the system's; defaults to the system's own. */
  readonly layout?: EngineLayout;
}

/** Starts the engine if none answers. Safe to repeat; says what it did. */
export async function startEngine(options: StartEngineOptions): Promise<{ endpoint: string }> {
  const { report } = options;
  const layout = options.layout ?? SYSTEM_ENGINE;
  const endpoint = `unix://${layout.socketPath}`;
  if (await answers(endpoint)) {
    report(`engine: already running at ${endpoint}`);
    return { endpoint };
  }
  if (process.getuid?.() !== 0) throw needsRoot();
  const dockerd = findProgram("dockerd") ?? (await installEngine(report));

  // The package's own scripts start the service on some systems; give such a dockerd its time.
  if (livingPid(layout.pidFile, "dockerd") !== null) {
    report("engine: a dockerd is there but does not answer yet, waiting");
    const isReady = await becomesReady(endpoint, () => livingPid(layout.pidFile, "dockerd") !== null);
    if (isReady) return { endpoint };
    // It ended while we waited: go on as if it had not been there. One that hangs is left alone.
    if (livingPid(layout.pidFile, "dockerd") !== null) throw notReady(layout, "does not answer", 0);
  }
  for (const path of await removeEngineLeftovers(layout))
    report(`engine: removed ${path}, left by a dead engine`);

  if (layout === SYSTEM_ENGINE && existsSync("/run/systemd/system")) await startBySystemd(report);
  else await startDetached(dockerd, layout, report);
  report(`engine: ready at ${endpoint}`);
  return { endpoint };
}

async function answers(endpoint: string): Promise<boolean> {
  return (await pingEngine(endpoint, {})).ok;
}

function needsRoot(): RunnerError {
  const hint =
    findProgram("dockerd") === null
      ? `run \`sudo sh -c "${INSTALL_HINT}"\`, add yourself to the docker group, or name an engine with --engine`
      : "run `sudo systemctl start docker` (or `sudo dockerd &`), or name an engine with --engine";
  return new RunnerError("engine-unreachable", "no engine answers, and starting one needs root", { hint });
}

async function installEngine(report: Report): Promise<string> {
  if (!canInstallPackages()) {
    throw new RunnerError("engine-unreachable", "no engine answers, and dockerd is not installed", {
      hint: "install Docker or Podman with your system's package manager, or name an engine with --engine",
    });
  }
  report("engine: installing docker.io and iptables");
  const outcome = await installDebianPackages(["docker.io", "iptables"]);
  const dockerd = findProgram("dockerd");
  if (dockerd === null) {
    throw new RunnerError("engine-unreachable", "installing docker.io failed", {
      data: { exitCode: outcome.exitCode, tail: outcome.tail },
      hint: `see why with: ${INSTALL_HINT}\n${outcome.tail.join("\n")}`,
    });
  }
  return dockerd;
}

async function startBySystemd(report: Report): Promise<void> {
  report("engine: starting docker.service");
  const outcome = await runSystem("systemctl", ["start", "docker.service"]);
  if (outcome.exitCode !== 0) {
    throw new RunnerError(
      "engine-unreachable",
      `systemctl start docker.service ended with ${outcome.exitCode}`,
      {
        data: { tail: outcome.tail },
        hint: "see why with: journalctl -u docker.service -n 50",
      },
    );
  }
  if (!(await becomesReady(`unix://${SYSTEM_ENGINE.socketPath}`, () => true))) {
    throw new RunnerError("engine-unreachable", "docker.service runs but does not answer", {
      data: { socketPath: SYSTEM_ENGINE.socketPath, limitMs: READY_LIMIT_MS },
      hint: "see why with: journalctl -u docker.service -n 50",
    });
  }
}

/** A dockerd of its own session, so that it outlives this process and no Ctrl+C of a terminal reaches it. */
async function startDetached(dockerd: string, layout: EngineLayout, report: Report): Promise<void> {
  report(`engine: starting dockerd, log in ${layout.logPath}`);
  const isBigLog = (statSync(layout.logPath, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES;
  if (isBigLog) truncateSync(layout.logPath);
  const log = openSync(layout.logPath, "a", 0o640);
  const logStart = statSync(layout.logPath).size;
  let exited: string | null = null;
  try {
    const child = spawn(dockerd, dockerdArgs(layout), {
      detached: true,
      cwd: "/",
      env: systemEnv(),
      stdio: ["ignore", log, log],
    });
    child.once("error", (cause) => {
      exited = `could not be started: ${cause.message}`;
    });
    child.once("exit", (code, signal) => {
      exited = `ended with ${signal ?? `exit code ${code}`}`;
    });
    child.unref();
  } finally {
    closeSync(log);
  }
  const isReady = await becomesReady(`unix://${layout.socketPath}`, () => exited === null);
  if (!isReady)
    throw notReady(layout, exited ?? `did not answer within ${READY_LIMIT_MS / 1000} s`, logStart);
}

function dockerdArgs(layout: EngineLayout): readonly string[] {
  if (layout === SYSTEM_ENGINE) return [];
  return [
    `--host=unix://${layout.socketPath}`,
    `--pidfile=${layout.pidFile}`,
    `--exec-root=${layout.execRoot}`,
    ...(layout.dataRoot === null ? [] : [`--data-root=${layout.dataRoot}`]),
    ...layout.extraArgs,
  ];
}

/** dockerd offers no event for being ready when not under systemd, so this asks again and again, within a bound. */
async function becomesReady(endpoint: string, isAlive: () => boolean): Promise<boolean> {
  const deadlineMs = performance.now() + READY_LIMIT_MS;
  while (performance.now() < deadlineMs) {
    if (await answers(endpoint)) return true;
    if (!isAlive()) return false;
    await sleep(100);
  }
  return false;
}

function notReady(layout: EngineLayout, what: string, logStart: number): RunnerError {
  const tail = logTail(layout.logPath, logStart);
  return new RunnerError("engine-unreachable", `dockerd ${what} (${layout.socketPath})`, {
    data: { socketPath: layout.socketPath, logPath: layout.logPath, tail },
    hint: [`the end of ${layout.logPath}:`, ...tail].join("\n"),
  });
}

function logTail(path: string, start: number): readonly string[] {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const from = Math.max(start, size - 8_192);
  if (size <= from) return [];
  const bytes = Buffer.alloc(size - from);
  const file = openSync(path, "r");
  try {
    readSync(file, bytes, 0, bytes.length, from);
  } finally {
    closeSync(file);
  }
  return bytes.toString("utf8").trimEnd().split("\n").slice(-15);
}
