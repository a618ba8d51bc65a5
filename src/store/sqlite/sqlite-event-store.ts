/**
 * The event log in SQLite: one table, one chain of hashes over all runs. An append is one transaction that is on disk (fsync) when it
 * returns, whole or not at all. Several processes may append; each finds the end of the chain under the write lock.
 * LIMITATION: `subscribe` hears what this store appends. Another process sees new rows by reading after the last seq it knows.
 */
import type { DatabaseSync } from "node:sqlite";
import type { LoggedEvent, RunEvent } from "../../model/event.ts";
import type { RunId } from "../../model/ids.ts";
import { RunnerError } from "../../model/runner-error.ts";
import type { EventStore } from "../store.ts";
import { createDelivery } from "./delivery.ts";
import { GENESIS_HASH, hashRow, verifyChain } from "./hash-chain.ts";
import { openForAppend, openForRead } from "./open-database.ts";
import { guard, storeFailure } from "./store-failure.ts";

export interface EventStoreOptions {
  readonly nowMs?: () => number;
  /** Never writes, and `append` throws. For other processes than the supervisor, beside it or when none lives. */
  readonly readOnly?: boolean;
  /** What a read-only open finds where there is no log yet: an error (default), or a log without rows. */
  readonly readOnlyIfMissing?: "fail" | "empty";
}

/** `appendSoon` waits this long, or for this many events, before it writes them in one transaction. */
const GROUP_MS = 5;
const GROUP_EVENTS = 256;
/** A log that takes nothing (disk full) must not eat the memory: past this many waiting events `appendSoon` throws. */
const MAX_WAITING_EVENTS = 8192;
const PAGE_ROWS = 256;

interface Draft {
  readonly runId: RunId;
  readonly atMs: number;
  readonly event: RunEvent;
  readonly body: string;
}

type Writer = (drafts: readonly Draft[]) => readonly LoggedEvent[];

/** Opens the log at `path`. Throws RunnerError `store-failed`, which names the file and the next step. */
export function openEventStore(path: string, options: EventStoreOptions = {}): EventStore {
  const nowMs = options.nowMs ?? Date.now;
  const database = options.readOnly ? openForRead(path) : openForAppend(path);
  if (!database) {
    if (options.readOnlyIfMissing === "empty") return createEmptyStore(path);
    throw new RunnerError("store-failed", `there is no event log at ${path}`, {
      data: { path },
      hint: "Nothing has run with this state directory yet.",
    });
  }

  const writer = options.readOnly ? null : guard(path, "prepare", () => createWriter(database));
  const pageOfRun = database.prepare(
    `SELECT seq, at_ms, body FROM events WHERE run_id = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ${PAGE_ROWS}`,
  );
  const lastSeq = database.prepare("SELECT MAX(seq) AS seq FROM events");
  const delivery = createDelivery<LoggedEvent>();
  let waiting: Draft[] = [];
  let timer: ReturnType<typeof setTimeout> | null = null;
  let isClosed = false;

  function checkOpen(): void {
    if (isClosed) throw new RunnerError("internal", `the event log ${path} was used after it was closed`);
  }

  function checkWriter(): Writer {
    checkOpen();
    if (writer) return writer;
    throw new RunnerError("internal", `the event log ${path} was opened for reading only`);
  }

  function draft(runId: RunId, event: RunEvent): Draft {
    return { runId, atMs: Math.trunc(nowMs()), event, body: JSON.stringify(event) };
  }

  /** Writes what waits and `own` behind it, in one transaction; on failure what waits goes on waiting and `own` is not written. */
  function commit(own: readonly Draft[]): readonly LoggedEvent[] {
    const write = checkWriter();
    const drafts = [...waiting, ...own];
    if (drafts.length === 0) return [];
    const logged = guard(path, "append to", () => write(drafts));
    waiting = [];
    if (timer) clearTimeout(timer);
    timer = null;
    delivery.deliver(logged);
    return logged.slice(logged.length - own.length);
  }

  /** Nobody is there to catch: what could not be written waits, and the next `append` or `flush` says why. */
  function flushQuietly(): void {
    timer = null;
    try {
      commit([]);
    } catch (error) {
      if (!(error instanceof RunnerError)) throw error;
    }
  }

  function* read(runId: RunId, afterSeq: number): IterableIterator<LoggedEvent> {
    checkOpen();
    if (waiting.length > 0) commit([]);
    const untilSeq = guard(path, "read", () => Number(lastSeq.get()?.["seq"] ?? 0));
    for (let seq = afterSeq; ; ) {
      checkOpen();
      // A page is read whole: no statement stays open between two, which would pin the WAL and forbid a second reader.
      const rows = guard(path, "read", () => pageOfRun.all(runId, seq, untilSeq));
      for (const row of rows) {
        seq = Number(row["seq"]);
        yield { seq, runId, atMs: Number(row["at_ms"]), event: parseBody(path, seq, row["body"]) };
      }
      if (rows.length < PAGE_ROWS) return;
    }
  }

  return {
    append: (runId, events) => commit(events.map((event) => draft(runId, event))),
    appendSoon(runId, event) {
      checkWriter();
      if (waiting.length >= MAX_WAITING_EVENTS) commit([]);
      waiting.push(draft(runId, event));
      if (waiting.length % GROUP_EVENTS === 0) flushQuietly();
      else timer ??= setTimeout(flushQuietly, GROUP_MS);
    },
    flush() {
      checkOpen();
      if (waiting.length > 0) commit([]);
    },
    read: (runId, afterSeq = 0) => read(runId, afterSeq),
    runs() {
      checkOpen();
      if (waiting.length > 0) commit([]);
      return guard(path, "read", () => listRuns(database));
    },
    subscribe: delivery.subscribe,
    verify() {
      checkOpen();
      if (waiting.length > 0) commit([]);
      return guard(path, "verify", () => verifyChain(database));
    },
    close() {
      if (isClosed) return;
      try {
        if (waiting.length > 0) commit([]);
      } finally {
        isClosed = true;
        if (timer) clearTimeout(timer);
        guard(path, "close", () => database.close());
      }
    },
  };
}

/** Returns the function that writes drafts as one transaction behind the end of the chain. */
function createWriter(database: DatabaseSync): Writer {
  const last = database.prepare("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1");
  const insert = database.prepare(
    "INSERT INTO events (seq, run_id, at_ms, type, body, prev_hash, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  return (drafts) => {
    database.exec("BEGIN IMMEDIATE");
    try {
      const end = last.get();
      let seq = Number(end?.["seq"] ?? 0);
      let prevHash = String(end?.["hash"] ?? GENESIS_HASH);
      const logged: LoggedEvent[] = [];
      for (const { runId, atMs, event, body } of drafts) {
        seq += 1;
        const hash = hashRow(prevHash, { seq: `${seq}`, runId, atMs: `${atMs}`, type: event.type, body });
        insert.run(seq, runId, atMs, event.type, body, prevHash, hash);
        logged.push({ seq, runId, atMs, event });
        prevHash = hash;
      }
      database.exec("COMMIT");
      return logged;
    } catch (error) {
      // SQLite has rolled back by itself after some errors, a full disk among them.
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  };
}

/** Jumps from run to run through the index instead of reading all rows. */
function listRuns(database: DatabaseSync): RunId[] {
  const rows = database
    .prepare(
      `WITH RECURSIVE run (id) AS (
         SELECT MIN(run_id) FROM events
         UNION ALL
         SELECT (SELECT MIN(run_id) FROM events WHERE run_id > run.id) FROM run WHERE run.id IS NOT NULL
       )
       SELECT id FROM run WHERE id IS NOT NULL
       ORDER BY (SELECT MIN(seq) FROM events WHERE run_id = id) DESC`,
    )
    .all();
  return rows.map((row) => row["id"] as RunId);
}

function parseBody(path: string, seq: number, body: unknown): RunEvent {
  try {
    return JSON.parse(String(body)) as RunEvent;
  } catch (cause) {
    throw storeFailure(path, `read row ${seq} of`, cause);
  }
}

function createEmptyStore(path: string): EventStore {
  const refuse = () => {
    throw new RunnerError("internal", `the event log ${path} was opened for reading only`);
  };
  return {
    append: refuse,
    appendSoon: refuse,
    flush: () => {},
    read: () => [].values(),
    runs: () => [],
    subscribe: () => () => {},
    verify: () => ({ ok: true, rows: 0, head: GENESIS_HASH }),
    close: () => {},
  };
}
