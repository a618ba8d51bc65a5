import { homedir } from "node:os";
import { join, resolve } from "node:path";

type Env = Readonly<Record<string, string | undefined>>;

/** The state directory: runs, logs, the event store, the supervisor's socket. */
export function stateDirFrom(env: Env): string {
  return resolve(
    env["BULKHEAD_STATE_DIR"] ??
      join(env["XDG_STATE_HOME"] ?? join(env["HOME"] ?? homedir(), ".local/state"), "bulkhead"),
  );
}

/** The cache directory: object stores, base trees, the toolbox. Deleting it when nothing runs costs time, and the patches not applied yet. */
export function cacheDirFrom(env: Env): string {
  return resolve(
    env["BULKHEAD_CACHE_DIR"] ??
      join(env["XDG_CACHE_HOME"] ?? join(env["HOME"] ?? homedir(), ".cache"), "bulkhead"),
  );
}
