/**
 * The face of `store/`: the append-only event log, the only truth about runs (design, decision 2). Synchronous: SQLite answers in
 * microseconds, and an event must be on disk before its effect is performed.
 */
import type { LoggedEvent, RunEvent } from "../model/event.ts";
import type { RunId } from "../model/ids.ts";

export interface EventStore {
  /** Appends in one transaction, durable when it returns. Throws RunnerError `store-failed`. */
  append(runId: RunId, events: readonly RunEvent[]): readonly LoggedEvent[];
  /** Appends soon (grouped, within a few milliseconds): for events nobody acts on, like `bus-called`. Order is kept with `append`. */
  appendSoon(runId: RunId, event: RunEvent): void;
  /** Forces out what `appendSoon` holds. */
  flush(): void;
  /** Events of one run with seq > `afterSeq`, oldest first. */
  read(runId: RunId, afterSeq?: number): IterableIterator<LoggedEvent>;
  /** Runs, newest first. */
  runs(): readonly RunId[];
  /** Called with each committed event, in order; returns the unsubscribe function. */
  subscribe(listener: (event: LoggedEvent) => void): () => void;
  /** Walks the hash chain; names the first row that does not fit. */
  verify():
    | { readonly ok: true; readonly rows: number; readonly head: string }
    | { readonly ok: false; readonly firstBadSeq: number; readonly why: string };
  close(): void;
}
