import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DoorConnection, OpenDoor } from "../door/door.ts";
import type { EventStore } from "../store/store.ts";
import type { Logger } from "../util/logger.ts";
import { supervisorSocketPath } from "../util/state-layout.ts";
import { createOperatorApi } from "./operator-api.ts";
import type { Supervisor } from "./supervisor.ts";

export interface ServeDeps {
  readonly stateDir: string;
  readonly stateId: string;
  readonly version: string;
  readonly supervisor: Supervisor;
  readonly store: EventStore;
  readonly openDoor: OpenDoor;
  readonly logger: Logger;
  /** How long to stay with no run and no client, milliseconds. */
  readonly idleMs: number;
}

/** Reads the id of a state directory (the `bulkhead.state` label of all it owns), making directory and id on first use. */
export function readStateId(stateDir: string): string {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const path = join(stateDir, "state-id");
  if (!existsSync(path)) {
    try {
      writeFileSync(path, `${randomBytes(8).toString("hex")}\n`, { flag: "wx", mode: 0o600 });
    } catch (error) {
      // Another process was first; its id is the one.
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
  }
  return readFileSync(path, "utf8").trim();
}

/**
 * Serves the operator socket until nothing is left to do: no run, no client for `idleMs`. Nothing polls: the idle timer is armed
 * when a client leaves or a run settles.
 */
export async function serve(deps: ServeDeps): Promise<void> {
  const { supervisor } = deps;
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let idleTimer: NodeJS.Timeout | undefined;
  const peers = new Set<number>();
  const armIdle = (): void => {
    clearTimeout(idleTimer);
    if (peers.size === 0 && supervisor.activeRuns().length === 0) idleTimer = setTimeout(finish, deps.idleMs);
  };
  const seen = (connection: DoorConnection | undefined): void => {
    if (!connection || peers.has(connection.id)) return;
    clearTimeout(idleTimer);
    peers.add(connection.id);
    connection.closed.addEventListener("abort", () => {
      peers.delete(connection.id);
      armIdle();
    });
  };
  const api = createOperatorApi({ ...deps, shutDown: () => void supervisor.quiet().then(finish) });
  const socketPath = supervisorSocketPath(deps.stateDir);
  const door = await deps.openDoor({
    socketPath,
    mode: 0o600,
    limits: { maxFrameBytes: 64 * 1024 * 1024, maxConnections: 1024, maxQueuedBytes: 64 * 1024 * 1024 },
    handlers: {
      async frame(text, connection) {
        seen(connection);
        const reply = await api.frame(text, connection);
        void supervisor.quiet().then(armIdle);
        return reply;
      },
      oversize: (limit) => api.oversize(limit),
    },
  });
  chmodSync(socketPath, 0o600);
  armIdle();
  await finished;
  await door.close(1_000);
}
