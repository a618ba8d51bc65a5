/** What is not, or no longer, the log that was written: tampered rows, foreign and damaged files, places that cannot hold one. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { RunEvent } from "../../../src/model/event.ts";
import { runIdSchema } from "../../../src/model/ids.ts";
import { RunnerError } from "../../../src/model/runner-error.ts";
import { hashRow } from "../../../src/store/sqlite/hash-chain.ts";
import { openEventStore } from "../../../src/store/sqlite/sqlite-event-store.ts";

const RUN = runIdSchema.parse("20261130-142501-aaaaaa");

let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "bulkhead-store-"));
  path = join(directory, "log.db");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function write(count: number): void {
  const store = openEventStore(path, { nowMs: () => 1000 });
  store.append(
    RUN,
    Array.from(
      { length: count },
      (_, i): RunEvent => ({
        type: "warning-raised",
        taskId: null,
        message: `event ${i + 1}`,
      }),
    ),
  );
  store.close();
}

/** Changes the file behind the store's back. */
function tamper(sql: string): void {
  const database = new DatabaseSync(path, { defensive: false });
  database.exec(sql);
  database.close();
}

function verify(): unknown {
  const store = openEventStore(path, { readOnly: true });
  const result = store.verify();
  store.close();
  return result;
}

function failureOf(step: () => unknown): RunnerError {
  try {
    step();
  } catch (error) {
    if (error instanceof RunnerError) return error;
    throw error;
  }
  throw new Error("nothing failed");
}

describe("verify names the first row that does not fit", () => {
  test.each<[string, string, number, RegExp]>([
    [
      "a changed body",
      "UPDATE events SET body = replace(body, 'event', 'Event') WHERE seq = 600",
      600,
      /content/,
    ],
    ["a changed time", "UPDATE events SET at_ms = at_ms + 1 WHERE seq = 2", 2, /content/],
    ["a changed type", "UPDATE events SET type = 'clock-ticked' WHERE seq = 3", 3, /content/],
    ["a row moved to another run", "UPDATE events SET run_id = run_id || 'x' WHERE seq = 4", 4, /content/],
    ["a removed row", "DELETE FROM events WHERE seq = 515", 515, /missing, the next one is 516/],
    ["the first row removed", "DELETE FROM events WHERE seq = 1", 1, /missing/],
    [
      "a removed row with the rest moved up",
      "DELETE FROM events WHERE seq = 5; UPDATE events SET seq = -(seq - 1) WHERE seq > 5; UPDATE events SET seq = -seq WHERE seq < 0",
      5,
      /does not follow/,
    ],
    [
      "two rows that changed places",
      "UPDATE events SET seq = 0 WHERE seq = 8; UPDATE events SET seq = 8 WHERE seq = 9; UPDATE events SET seq = 9 WHERE seq = 0",
      8,
      /does not follow/,
    ],
    [
      "a row in front",
      "INSERT INTO events SELECT 0, run_id, at_ms, type, body, prev_hash, hash FROM events WHERE seq = 1",
      1,
      /before the first/,
    ],
    [
      "a time that no number of JavaScript can hold",
      "UPDATE events SET at_ms = 9223372036854775807 WHERE seq = 7",
      7,
      /content/,
    ],
    [
      "a copy of the last row behind it",
      "INSERT INTO events SELECT 701, run_id, at_ms, type, body, prev_hash, hash FROM events WHERE seq = 700",
      701,
      /does not follow/,
    ],
  ])("%s", (_name, sql, firstBadSeq, why) => {
    write(700);
    expect(verify()).toMatchObject({ ok: true, rows: 700 });
    tamper(sql);
    expect(verify()).toEqual({ ok: false, firstBadSeq, why: expect.stringMatching(why) });
  });

  test("a changed row whose own hash was made to fit: the next one tells", () => {
    write(5);
    const database = new DatabaseSync(path);
    const row = database.prepare("SELECT * FROM events WHERE seq = 3").get();
    const hash = hashRow(String(row?.["prev_hash"]), {
      seq: "3",
      runId: RUN,
      atMs: "1000",
      type: "warning-raised",
      body: "{}",
    });
    database.prepare("UPDATE events SET body = '{}', hash = ? WHERE seq = 3").run(hash);
    database.close();
    expect(verify()).toEqual({ ok: false, firstBadSeq: 4, why: expect.stringContaining("does not follow") });
  });

  test("a row that the index by run no longer leads to, so that reading the run would pass over it", () => {
    write(5);
    // The index is taken out of the schema, so that removing and restoring the row leaves it behind, then put back.
    tamper(`
      PRAGMA writable_schema = ON;
      CREATE TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'events_by_run';
      CREATE TABLE kept_row AS SELECT * FROM events WHERE seq = 3;
      DELETE FROM events WHERE seq = 3;
      DELETE FROM sqlite_schema WHERE name = 'events_by_run';
    `);
    tamper(`
      PRAGMA writable_schema = ON;
      INSERT INTO events SELECT * FROM kept_row;
      INSERT INTO sqlite_schema SELECT * FROM kept;
    `);
    const store = openEventStore(path, { readOnly: true });
    expect([...store.read(RUN)].map(({ seq }) => seq)).toEqual([1, 2, 4, 5]);
    expect(store.verify()).toEqual({ ok: false, firstBadSeq: 3, why: expect.stringContaining("index") });
    store.close();
  });

  test("the tail cut off cannot be seen from the file alone, but the head differs from the one noted before", () => {
    write(5);
    const before = verify();
    tamper("DELETE FROM events WHERE seq > 3");
    expect(verify()).toMatchObject({ ok: true, rows: 3 });
    expect(verify()).not.toMatchObject({ head: (before as { head: string }).head });
  });

  test("a page of the file that was overwritten", () => {
    write(2000);
    const bytes = readFileSync(path);
    bytes.fill(0xa5, 4096 * 20, 4096 * 60);
    writeFileSync(path, bytes);
    expect(verify()).toMatchObject({
      ok: false,
      firstBadSeq: expect.toSatisfy((seq: number) => seq > 0 && seq < 2000),
    });
  });
});

test("rows that cannot be read are store-failed and name the row", () => {
  write(3);
  tamper("UPDATE events SET body = '{' WHERE seq = 2");
  const store = openEventStore(path, { readOnly: true });
  const failure = failureOf(() => [...store.read(RUN)]);
  store.close();
  expect(failure).toMatchObject({ code: "store-failed", data: { path } });
  expect(failure.message).toContain("row 2");
});

describe.each([
  ["for appending", {}],
  ["for reading", { readOnly: true, readOnlyIfMissing: "empty" as const }],
])(
  "opening %s refuses, names the path and the next step, and leaves the file as it is:",
  (_name, options) => {
    function refused(): RunnerError {
      const before = readFileSync(path);
      const failure = failureOf(() => openEventStore(path, options));
      expect(failure.code).toBe("store-failed");
      expect(failure.message).toContain(path);
      expect(failure.data).toMatchObject({ path });
      expect(readFileSync(path).equals(before)).toBe(true);
      return failure;
    }

    test("a file that is no database", () => {
      writeFileSync(path, "not a database, but long enough to be one ".repeat(200));
      expect(refused().hint).toMatch(/Move the file away/);
    });

    test("a database of something else", () => {
      tamper("CREATE TABLE notes (x); INSERT INTO notes VALUES (1)");
      expect(refused().message).toMatch(/not an event log of bulkhead/);
    });

    test("a log of a later version", () => {
      write(1);
      tamper("PRAGMA user_version = 99");
      const failure = refused();
      expect(failure.message).toMatch(/has schema 99; this version of bulkhead knows schemas up to 1/);
      expect(failure.data).toMatchObject({ version: 99, supported: 1 });
    });

    test("a log cut off in the middle", () => {
      write(500);
      writeFileSync(path, readFileSync(path).subarray(0, 5000));
      const attempt = () => {
        const store = openEventStore(path, options);
        try {
          const result = store.verify();
          if (!result.ok) throw new RunnerError("store-failed", `${path}: ${result.why}`);
        } finally {
          store.close();
        }
      };
      expect(failureOf(attempt).message).toContain(path);
    });
  },
);

test("places that cannot hold a log are store-failed with the path and a next step", () => {
  writeFileSync(join(directory, "file"), "");
  mkdirSync(join(directory, "folder"));
  for (const place of ["file/log.db", "folder"]) {
    const failure = failureOf(() => openEventStore(join(directory, place)));
    expect(failure.code).toBe("store-failed");
    expect(failure.message).toContain(join(directory, place));
    expect(failure.hint).toBeDefined();
  }
});

test("a log that is not there: an error, or empty where the caller says so, and nothing is made", () => {
  expect(failureOf(() => openEventStore(path, { readOnly: true }))).toMatchObject({
    code: "store-failed",
    data: { path },
    hint: expect.stringContaining("Nothing has run"),
  });
  const empty = openEventStore(path, { readOnly: true, readOnlyIfMissing: "empty" });
  expect([empty.runs(), [...empty.read(RUN)], empty.verify()]).toMatchObject([[], [], { ok: true, rows: 0 }]);
  expect(() => empty.append(RUN, [])).toThrow(/reading only/);
  empty.close();
  expect(existsSync(path)).toBe(false);
});

test("a file that its writer has just made is an empty log to readers, and may be begun", () => {
  writeFileSync(path, "");
  expect(openEventStore(path, { readOnly: true, readOnlyIfMissing: "empty" }).runs()).toEqual([]);
  write(1);
  expect(verify()).toMatchObject({ ok: true, rows: 1 });
});

test("a new log, with all that belongs to it, is for its user only", () => {
  const nested = join(directory, "state", "deep", "log.db");
  const store = openEventStore(nested);
  store.append(RUN, [{ type: "clock-ticked" }]);
  for (const file of [nested, `${nested}-wal`, `${nested}-shm`])
    expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(directory, "state")).mode & 0o777).toBe(0o700);
  store.close();
});
