import { spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { RunnerError } from "../model/runner-error.ts";
import { supervisorSocketPath } from "../util/state-layout.ts";
import { connectRpc, type RpcClient } from "./rpc-client.ts";

/** How the supervisor process is started: the program and its arguments; the state directory goes in the environment. */
export interface SupervisorLaunch {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

const START_LIMIT_MS = 15_000;

/** Connects to the living supervisor of a state directory, or returns null. */
export function findSupervisor(stateDir: string): Promise<RpcClient | null> {
  return connectRpc(supervisorSocketPath(stateDir));
}

/**
 * Connects to the supervisor, starting one in a session of its own where none lives: it outlives this terminal, so "leave running"
 * costs nothing (docs/adr/0003). Two callers at once both start one; the lock lets a single one live and both connect to it.
 * Throws RunnerError `supervisor-unreachable` with the end of its log.
 */
export async function reachSupervisor(
  stateDir: string,
  version: string,
  launch: SupervisorLaunch,
): Promise<RpcClient> {
  for (let round = 0; round < 3; round++) {
    const client = (await findSupervisor(stateDir)) ?? (await startSupervisor(stateDir, launch));
    const hello = await greet(client);
    // It was on its way out when we came; the next round finds its successor, or makes one.
    if (hello === null) continue;
    if (hello.version === version) return client;
    const { active } = (await client.call("runs", {})) as { active: readonly string[] };
    if (active.length > 0) {
      client.close();
      throw new RunnerError(
        "supervisor-unreachable",
        `the supervisor of ${stateDir} is version ${hello.version}, this is ${version}, and it has ${active.length} active run(s)`,
        { hint: "wait for them or cancel them, then try again" },
      );
    }
    await client.call("shutdown", {});
    await client.closed;
  }
  throw new RunnerError("supervisor-unreachable", `the supervisors of ${stateDir} come and go`, {
    hint: `see ${join(stateDir, "supervisor.log")}`,
  });
}

/** Null where the supervisor closed the connection before it answered. */
async function greet(client: RpcClient): Promise<{ version: string } | null> {
  try {
    return (await client.call("hello", {})) as { version: string };
  } catch (error) {
    if (error instanceof RunnerError && error.code === "supervisor-unreachable") return null;
    throw error;
  }
}

async function startSupervisor(stateDir: string, launch: SupervisorLaunch): Promise<RpcClient> {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const logPath = join(stateDir, "supervisor.log");
  const log = openSync(logPath, "a", 0o600);
  const [program = process.execPath, ...args] = launch.argv;
  const child = spawn(program, args, {
    detached: true,
    stdio: ["ignore", log, log],
    cwd: "/",
    env: { ...launch.env, BULKHEAD_STATE_DIR: stateDir },
  });
  let isGone = false;
  child.once("exit", () => {
    isGone = true;
  });
  child.once("error", () => {
    isGone = true;
  });
  child.unref();
  // The one place that waits by trying: there is no event for "a socket now listens", and it is over in a few rounds.
  const limit = performance.now() + START_LIMIT_MS;
  while (performance.now() < limit) {
    const client = await findSupervisor(stateDir);
    if (client) return client;
    if (isGone && !(await lingers(stateDir))) break;
    await delay(15);
  }
  throw new RunnerError("supervisor-unreachable", `the supervisor did not come up in ${stateDir}`, {
    hint: `its log ${logPath} ends with:\n${tail(logPath)}`,
  });
}

/** A child that lost the race for the lock exits at once; the winner may need a moment more to listen. */
async function lingers(stateDir: string): Promise<boolean> {
  await delay(300);
  const client = await findSupervisor(stateDir);
  client?.close();
  return client !== null;
}

function tail(path: string): string {
  try {
    return readFileSync(path, "utf8").split("\n").slice(-8).join("\n");
  } catch {
    return "(no log)";
  }
}
