/**
 * Theory of operation: the log is in WAL mode, so that readers in other processes never wait for the supervisor nor it for them. A reader
 * needs the `-shm` file beside the database, and SQLite makes it where it is missing. A reader who may not write there gets, in this order:
 * the `-shm` that is there; a plain look at the file where no `-wal` holds newer rows; a private copy of the two where one does.
 * LIMITATION: the last two see the log as it was when they opened it, and a writer that begins meanwhile may make the plain look fail.
 */
import { closeSync, copyFileSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { RunnerError } from "../../model/runner-error.ts";
import { guard, isAccessDenied } from "./store-failure.ts";

/** Counts changes of the tables below. A log with a greater number is refused, never guessed at. */
const SCHEMA_VERSION = 1;
/** "BKHD": tells our files from other SQLite databases. */
const APPLICATION_ID = 0x424b4844;
/** How long a write waits for one of another process; it blocks the event loop, and both only ever hold the lock for one short append. */
const BUSY_TIMEOUT_MS = 5000;
const MAX_WAL_BYTES = 64 * 1024 ** 2;

const SCHEMA = `
  CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL
  ) STRICT;
  CREATE INDEX events_by_run ON events (run_id, seq);
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** Opens the log for appending; makes the directory, the file (for this user only) and the table where they are missing. */
export function openForAppend(path: string): DatabaseSync {
  return guard(path, "open", () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    closeSync(openSync(path, "a", 0o600));
    const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    try {
      const isNew = checkSchema(path, database) === "empty";
      const mode = database.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"];
      if (mode !== "wal") {
        throw new RunnerError(
          "store-failed",
          `the file system of ${path} cannot hold an event log (no WAL)`,
          {
            data: { path, journalMode: mode },
            hint: "Choose a state directory on a local disk.",
          },
        );
      }
      database.exec(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${MAX_WAL_BYTES}`);
      if (isNew) createSchema(path, database);
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  });
}

/** Opens the log for reading; null where there is none yet (no file, or one whose writer has not made the table). */
export function openForRead(path: string): DatabaseSync | null {
  return guard(path, "read", () => {
    if (sizeOf(path) === null) return null;
    try {
      return openChecked(path, path);
    } catch (error) {
      if (!isAccessDenied(error)) throw error;
      return (sizeOf(`${path}-wal`) ?? 0) === 0 ? openUnchanging(path) : openCopy(path);
    }
  });
}

function openChecked(path: string, location: string | URL): DatabaseSync | null {
  const database = new DatabaseSync(location, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    if (checkSchema(path, database) === "ours") return database;
  } catch (error) {
    database.close();
    throw error;
  }
  database.close();
  return null;
}

/** Reads the file alone, without locks: right while nobody writes, and nobody does where no `-wal` holds rows and `-shm` is missing. */
function openUnchanging(path: string): DatabaseSync | null {
  const url = pathToFileURL(path);
  url.searchParams.set("immutable", "1");
  return openChecked(path, url);
}

/** Reads a copy that has no name any more once it is open. */
function openCopy(path: string): DatabaseSync | null {
  const directory = mkdtempSync(join(tmpdir(), "bulkhead-log-"));
  try {
    const copy = join(directory, basename(path));
    copyFileSync(path, copy);
    copyFileSync(`${path}-wal`, `${copy}-wal`);
    return openChecked(path, copy);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function checkSchema(path: string, database: DatabaseSync): "ours" | "empty" {
  const pragma = (name: string) => Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
  const version = pragma("user_version");
  const applicationId = pragma("application_id");
  const tables = Number(database.prepare("SELECT COUNT(*) AS count FROM sqlite_schema").get()?.["count"]);
  if (applicationId === 0 && version === 0 && tables === 0) return "empty";
  if (applicationId !== APPLICATION_ID) {
    throw new RunnerError("store-failed", `${path} is a SQLite database, but not an event log of bulkhead`, {
      data: { path, applicationId },
      hint: "Check the state directory; move the file away if it does not belong there.",
    });
  }
  if (version > SCHEMA_VERSION) {
    throw new RunnerError(
      "store-failed",
      `the event log ${path} has schema ${version}; this version of bulkhead knows schemas up to ${SCHEMA_VERSION}`,
      {
        data: { path, version, supported: SCHEMA_VERSION },
        hint: "A newer bulkhead wrote it: use that one.",
      },
    );
  }
  return "ours";
}

/** Another process may be doing the same: only the one that gets the lock on an empty file makes the table. */
function createSchema(path: string, database: DatabaseSync): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    if (checkSchema(path, database) === "empty") database.exec(SCHEMA);
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}
