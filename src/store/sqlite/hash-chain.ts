/**
 * Theory of operation: each row carries a SHA-256 over the row before it and over all its own columns, so a row that was changed, removed,
 * inserted or moved no longer fits. LIMITATION: the chain has no anchor outside the file. Cutting off its tail, or writing the whole chain
 * anew, cannot be seen from the file alone: whoever must rule that out keeps the head that `verify` reports and compares it later.
 */
import { createHash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { EventStore } from "../store.ts";
import { sqliteCode } from "./store-failure.ts";

/** What the first row follows. */
export const GENESIS_HASH = "0".repeat(64);

const PAGE_ROWS = 512;

/** The columns of a row as text. */
export interface ChainedRow {
  readonly seq: string;
  readonly runId: string;
  readonly atMs: string;
  readonly type: string;
  readonly body: string;
}

/**
 * SHA-256 (hex) over `<bytes>:<text>,` of each field: previous hash, seq, run id, time, type, body. The lengths make it unambiguous: no
 * two different rows give the same bytes.
 */
export function hashRow(prevHash: string, row: ChainedRow): string {
  const hash = createHash("sha256");
  for (const field of [prevHash, row.seq, row.runId, row.atMs, row.type, row.body]) {
    hash.update(`${Buffer.byteLength(field)}:${field},`);
  }
  return hash.digest("hex");
}

/** Walks all rows in the order of seq, a page at a time; then asks whether the index that finds a run's rows has lost one. */
export function verifyChain(database: DatabaseSync): ReturnType<EventStore["verify"]> {
  // Numbers are read as text: a row that was tampered with may hold one that JavaScript cannot.
  const page = database.prepare(
    `SELECT CAST(seq AS TEXT) AS seq_text, run_id, CAST(at_ms AS TEXT) AS at_text, type, body, prev_hash, hash
     FROM events NOT INDEXED WHERE seq > ? ORDER BY seq LIMIT ${PAGE_ROWS}`,
  );
  let rows = 0;
  let head = GENESIS_HASH;
  const bad = (why: string) => ({ ok: false as const, firstBadSeq: rows + 1, why });

  try {
    const below = database.prepare("SELECT 1 FROM events WHERE seq < 1 LIMIT 1").get();
    if (below) return bad("a row lies before the first one");
    for (;;) {
      const found = page.all(rows);
      for (const row of found) {
        const why = whyBad(row, rows + 1, head);
        if (why) return bad(why);
        rows += 1;
        head = String(row["hash"]);
      }
      if (found.length < PAGE_ROWS) break;
    }
    const lost = database
      .prepare(
        `SELECT seq FROM events AS e NOT INDEXED WHERE NOT EXISTS (
           SELECT 1 FROM events AS i INDEXED BY events_by_run WHERE i.run_id = e.run_id AND i.seq = e.seq
         ) ORDER BY seq LIMIT 1`,
      )
      .get();
    if (lost) {
      return {
        ok: false,
        firstBadSeq: Number(lost["seq"]),
        why: "the index by run does not lead to the row",
      };
    }
  } catch (error) {
    if (sqliteCode(error) === null) throw error;
    return bad(`the file is damaged: ${error instanceof Error ? error.message : String(error)}`);
  }
  return { ok: true, rows, head };
}

function whyBad(row: Record<string, unknown>, expectedSeq: number, prevHash: string): string | null {
  const { seq_text: seq, run_id: runId, at_text: atMs, type, body, prev_hash: statedPrev, hash } = row;
  if (
    typeof seq !== "string" ||
    typeof runId !== "string" ||
    typeof atMs !== "string" ||
    typeof type !== "string" ||
    typeof body !== "string"
  ) {
    return "a column does not hold what it must";
  }
  if (seq !== String(expectedSeq)) return `row ${expectedSeq} is missing, the next one is ${seq}`;
  if (statedPrev !== prevHash) return "it does not follow the row before it";
  if (hash !== hashRow(prevHash, { seq, runId, atMs, type, body }))
    return "its content does not match its hash";
  return null;
}
