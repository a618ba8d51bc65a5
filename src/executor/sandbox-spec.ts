import { AGENT_UID } from "../model/agent-user.ts";
import { LABELS, type MountSpec, type SandboxSpec } from "../sandbox/sandbox.ts";
import type { AttemptRequest } from "./executor.ts";

/** Where things are inside. */
export const INSIDE = {
  workspace: "/workspace",
  door: "/run/bulkhead",
  toolbox: "/opt/bulkhead",
  home: "/home/agent",
} as const;

/** How much later than the host's own limit the container ends itself, should the supervisor be gone (row A8). */
const INNER_TIMEOUT_GRACE_MS = 15_000;

export interface SandboxPlaces {
  readonly stateId: string;
  readonly volume: string;
  readonly devicePath: string | null;
  /** Whether the workspace lies on a file system of the size that `caps.disk` asks for. */
  readonly diskCap: "hard" | "none";
  /** What is said of a disk cap that is not `hard`. */
  readonly diskNote?: string;
  readonly doorDir: string;
  readonly toolboxDir: string;
  readonly hostsFile: string;
  readonly imageId: string;
}

/** The labels of everything an attempt makes (design, decision 10). */
export function attemptLabels(stateId: string, key: AttemptRequest["key"]): Record<string, string> {
  return {
    [LABELS.state]: stateId,
    [LABELS.run]: key.runId,
    [LABELS.task]: key.taskId,
    [LABELS.attempt]: String(key.attempt),
  };
}

/** Engine names for an attempt's container and volume. Unique per state directory, run, task and attempt (row P9). */
export function engineName(stateId: string, key: AttemptRequest["key"]): string {
  return `bulkhead-${stateId.slice(0, 8)}-${key.runId}-${key.taskId}-${key.attempt}`;
}

/** Puts together what the sandbox is to be: nothing enters the environment but what is listed here (row A4). */
export function buildSandboxSpec(request: AttemptRequest, places: SandboxPlaces): SandboxSpec {
  const { task, key } = request;
  const mounts: MountSpec[] = [
    { type: "volume", volume: places.volume, target: INSIDE.workspace, readOnly: false },
    { type: "bind", source: places.doorDir, target: INSIDE.door, readOnly: true },
    { type: "bind", source: places.toolboxDir, target: INSIDE.toolbox, readOnly: true },
    { type: "bind", source: places.hostsFile, target: "/etc/hosts", readOnly: true },
  ];
  return {
    key,
    stateId: places.stateId,
    name: engineName(places.stateId, key),
    image: places.imageId,
    // Absent in runs that an older version logged.
    runtime: task.runtime ?? null,
    argv: task.command.argv,
    stdinPath: task.command.stdin === null ? null : `${INSIDE.door}/stdin`,
    env: {
      PATH: `${INSIDE.toolbox}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
      HOME: INSIDE.home,
      USER: "agent",
      LOGNAME: "agent",
      LANG: "C.UTF-8",
      LC_ALL: "C.UTF-8",
      TERM: "dumb",
      XDG_CACHE_HOME: `${INSIDE.home}/.cache`,
      ...task.env,
      BULKHEAD_RUN: key.runId,
      BULKHEAD_TASK: key.taskId,
      BULKHEAD_ATTEMPT: String(key.attempt),
      BULKHEAD_DOOR: `${INSIDE.door}/door.sock`,
    },
    uid: AGENT_UID,
    workingDir: INSIDE.workspace,
    mounts,
    caps: task.caps,
    diskEnforced:
      places.diskCap === "hard" && task.caps.diskBytes !== null ? { bytes: task.caps.diskBytes } : null,
    ...(places.diskNote === undefined ? {} : { diskNote: places.diskNote }),
    innerTimeoutMs: task.timeoutMs + INNER_TIMEOUT_GRACE_MS,
    ioDevicePath: places.devicePath,
    labels: attemptLabels(places.stateId, key),
  };
}
