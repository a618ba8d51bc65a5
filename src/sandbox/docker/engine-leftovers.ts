import { lstatSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";

/** Where one dockerd keeps the files that tell others it lives. */
export interface EngineLayout {
  readonly socketPath: string;
  readonly pidFile: string;
  /** dockerd's --exec-root: its own containerd's files are in `containerd/` below. */
  readonly execRoot: string;
  /** null leaves dockerd its default (/var/lib/docker). */
  readonly dataRoot: string | null;
  readonly logPath: string;
  /** More arguments for dockerd. */
  readonly extraArgs: readonly string[];
}

export const SYSTEM_ENGINE: EngineLayout = {
  socketPath: "/var/run/docker.sock",
  pidFile: "/var/run/docker.pid",
  execRoot: "/var/run/docker",
  dataRoot: null,
  logPath: "/var/log/bulkhead-dockerd.log",
  extraArgs: [],
};

/** Pid of the process a pid file names, if that process lives and is the named program; else null. */
export function livingPid(pidFile: string, program: string): number | null {
  let text: string;
  try {
    text = readFileSync(pidFile, "utf8").trim();
  } catch {
    return null;
  }
  const pid = Number(text);
  if (!Number.isSafeInteger(pid) || pid <= 1) return null;
  return processName(pid) === program ? pid : null;
}

/** The kernel's name of a process (at most 15 bytes), null where it is gone or only a zombie nobody has reaped. */
function processName(pid: number): string | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return null;
  }
  // The name stands in brackets and may hold brackets itself; the state letter follows the last one.
  const end = stat.lastIndexOf(")");
  const state = stat.charAt(end + 2);
  return state === "Z" || state === "X" ? null : stat.slice(stat.indexOf("(") + 1, end);
}

/**
 * Removes what a dead engine left that keeps a new one from starting: pid files whose number is free or was given to another
 * program since (dockerd then believes it already runs), and sockets nobody listens on. Only to be called while no living
 * dockerd owns the layout. A containerd that outlived its dockerd stays: the new dockerd takes it over, with its containers.
 */
export async function removeEngineLeftovers(layout: EngineLayout): Promise<readonly string[]> {
  const removed: string[] = [];
  const containerd = join(layout.execRoot, "containerd");
  if (exists(layout.pidFile) && livingPid(layout.pidFile, "dockerd") === null) {
    rmSync(layout.pidFile);
    removed.push(layout.pidFile);
  }
  for (const name of namesIn(containerd)) {
    const path = join(containerd, name);
    const isStalePid = name.endsWith(".pid") && livingPid(path, name.slice(0, -".pid".length)) === null;
    if (isStalePid || (await isDeadSocket(path))) {
      rmSync(path);
      removed.push(path);
    }
  }
  if (await isDeadSocket(layout.socketPath)) {
    rmSync(layout.socketPath);
    removed.push(layout.socketPath);
  } else if (isDirectory(layout.socketPath)) {
    // A container that bind-mounted the socket before the engine was up makes the engine create a folder in its place.
    rmdirSync(layout.socketPath);
    removed.push(`${layout.socketPath}/`);
  }
  return removed;
}

/** True for a socket file that refuses connections. Any other answer, also none, counts as alive. */
function isDeadSocket(path: string): Promise<boolean> {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) return Promise.resolve(false);
  return new Promise((resolve) => {
    const probe = createConnection(path);
    const settle = (isDead: boolean) => {
      probe.destroy();
      resolve(isDead);
    };
    probe.setTimeout(2_000, () => settle(false));
    probe.once("connect", () => settle(false));
    probe.once("error", (cause: NodeJS.ErrnoException) => settle(cause.code === "ECONNREFUSED"));
  });
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
