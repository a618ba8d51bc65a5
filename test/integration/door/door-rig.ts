import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BusLimits, createCallerBus } from "../../../src/bus/caller-bus.ts";
import type { Door, DoorHandlers, DoorLimits } from "../../../src/door/door.ts";
import { openDoor } from "../../../src/door/unix-door.ts";
import { attemptKey, createMemoryPort, type MemoryPort } from "../../unit/bus/memory-port.ts";

/** A directory of its own with one door in it, removed with the rig. */
export interface DoorRig extends AsyncDisposable {
  readonly directory: string;
  readonly socketPath: string;
  readonly door: Door;
}

export interface BusRig extends DoorRig {
  readonly port: MemoryPort;
  readonly logged: object[];
}

/** Opens a door with the given handlers. */
export async function openRig(handlers: DoorHandlers, limits: Partial<DoorLimits> = {}): Promise<DoorRig> {
  const directory = await mkdtemp(join(tmpdir(), "bulkhead-door-"));
  const socketPath = join(directory, "door.sock");
  const door = await openDoor({ socketPath, mode: 0o666, limits, handlers });
  return {
    directory,
    socketPath,
    door,
    async [Symbol.asyncDispose]() {
      await door.close(100);
      await rm(directory, { recursive: true });
    },
  };
}

/** Opens a door with the bus of one task behind it. */
export async function openBusRig(
  options: {
    task?: string;
    door?: Partial<DoorLimits>;
    bus?: Partial<BusLimits>;
    http?: DoorHandlers["http"];
  } = {},
): Promise<BusRig> {
  const port = createMemoryPort();
  const logged: object[] = [];
  const log = (data: object) => void logged.push(data);
  const logger = { debug: log, info: log, warn: log, error: log };
  const bus = createCallerBus(attemptKey(options.task ?? "docs"), port, logger, options.bus);
  const handlers = { ...bus, ...(options.http ? { http: options.http } : {}) };
  return { ...(await openRig(handlers, options.door)), port, logged };
}

/** Handlers that answer `echo:<text>`, at once or when released. */
export function createEcho(): DoorHandlers & { readonly seen: string[]; hold(): () => void } {
  const seen: string[] = [];
  let gate: Promise<void> | undefined;
  return {
    seen,
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      return () => {
        gate = undefined;
        resolve();
      };
    },
    async frame(text) {
      seen.push(text);
      if (gate && !text.includes("fast")) await gate;
      return `echo:${text}`;
    },
    oversize: (limit) => `over ${limit}`,
  };
}
