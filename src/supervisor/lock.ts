import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** A lock held until `release` or the end of the process, whatever ends it. */
export interface SupervisorLock {
  release(): void;
}

/**
 * Takes the one-supervisor lock of a state directory, or returns null where another process has it.
 * The lock is an exclusive SQLite transaction: the kernel drops its byte-range lock with the process, so it cannot go stale
 * (a pid file can), and Node has no flock of its own.
 */
export function takeSupervisorLock(stateDir: string): SupervisorLock | null {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(join(stateDir, "supervisor.lock"));
  try {
    database.exec("PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    const SQLITE_BUSY = 5;
    if (error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY) return null;
    throw error;
  }
  return { release: () => database.close() };
}
