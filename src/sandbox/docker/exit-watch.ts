/**
 * Tells when containers end, whatever happens to the connection.
 *
 * Theory of operation. One event stream per engine says "die" and "oom" for all our containers. It can fall silent
 * (daemon restart, partition) and a `wait` request can hang for ever, so two things back it up: each time the stream
 * opens, and every RECONCILE_MS while anyone waits, one list request by label is compared with who waits. When the
 * engine answers no list for `lostAfterMs`, every waiter is told that the engine is lost. State:
 *
 *   answering --transport error--> doubtful (retry each second) --lostAfterMs--> lost (all waiters told)
 *       ^------------answer--------------'
 */
import type { Readable } from "node:stream";
import type { Logger } from "../../util/logger.ts";
import { LABELS } from "../sandbox.ts";
import { type EngineClient, isUnreachable, messageOf } from "./engine-client.ts";

const RECONCILE_MS = 15_000;
const DOUBTFUL_RETRY_MS = 1_000;
const LIST_LIMIT_MS = 10_000;
const MAX_EVENT_BYTES = 1024 * 1024;
/** Events replayed when the stream opens again: the stamps of the engine have a resolution of one second here. */
const REPLAY_SECONDS = 1;

export type ExitSignal = { readonly kind: "ended" } | { readonly kind: "lost"; readonly message: string };

export interface ExitTicket {
  readonly signal: Promise<ExitSignal>;
  /** Another source (the `wait` request) saw the end. */
  notifyEnded(): void;
  readonly oomEvents: () => number;
  /** Numbers of the signals that the engine says it sent, whoever ordered them. */
  readonly signals: () => readonly number[];
  /** MUST be called in the end, or the engine is asked about this container for ever. */
  release(): void;
}

export interface ExitWatch {
  watch(id: string): ExitTicket;
  /** Something looks wrong: compare with the engine now. */
  doubt(): void;
  close(): void;
}

interface Waiter {
  readonly signal: PromiseWithResolvers<ExitSignal>;
  oomEvents: number;
  /** By the engine's stamp: a stream that is opened again tells some events twice. */
  readonly signals: Map<string, number>;
}

export function createExitWatch(client: EngineClient, logger: Logger, lostAfterMs: number): ExitWatch {
  const waiters = new Map<string, Waiter>();
  let stream: Readable | null = null;
  let isOpening = false;
  let isReconciling = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  let doubtfulSinceMs: number | null = null;
  let lastEventSeconds: number | null = null;

  function handleEvent(line: string): void {
    const event = parseEvent(line);
    if (event === null) return;
    lastEventSeconds = event.seconds ?? lastEventSeconds;
    const waiter = waiters.get(event.id);
    if (waiter === undefined) return;
    if (event.action === "die") waiter.signal.resolve({ kind: "ended" });
    if (event.action === "oom") waiter.oomEvents += 1;
    if (event.action === "kill" && event.signal !== null) waiter.signals.set(event.stamp, event.signal);
  }

  async function openStream(): Promise<void> {
    if (stream !== null || isOpening || isClosed) return;
    isOpening = true;
    try {
      const since = lastEventSeconds === null ? {} : { since: lastEventSeconds - REPLAY_SECONDS };
      const opened = (await client.docker.getEvents({
        ...since,
        filters: { type: ["container"], event: ["die", "oom", "kill"], label: [LABELS.state] },
      })) as Readable;
      if (isClosed) return void opened.destroy();
      stream = opened;
      const onOver = () => {
        if (stream !== opened) return;
        stream = null;
        if (isClosed) return;
        logger.warn({ endpoint: client.endpoint }, "the engine's event stream ended; opening it again");
        doubt();
      };
      opened.on("error", onOver);
      opened.on("close", onOver);
      readLines(opened, handleEvent);
      void reconcile();
    } catch (error) {
      if (isClosed) return;
      logger.warn(
        { endpoint: client.endpoint, error: messageOf(error) },
        "cannot open the engine's event stream",
      );
      schedule(DOUBTFUL_RETRY_MS);
    } finally {
      isOpening = false;
    }
  }

  /** Compares who waits with what the engine has; one at a time. */
  async function reconcile(): Promise<void> {
    if (isReconciling || isClosed || waiters.size === 0) return;
    isReconciling = true;
    const asked = [...waiters];
    try {
      const found = await client.call(
        "list containers",
        () => client.docker.listContainers({ all: true, filters: { label: [LABELS.state] } }),
        LIST_LIMIT_MS,
      );
      doubtfulSinceMs = null;
      const live = new Set(
        found.filter(({ State }) => !["exited", "dead", "removing"].includes(State)).map(({ Id }) => Id),
      );
      for (const [id, waiter] of asked) if (!live.has(id)) waiter.signal.resolve({ kind: "ended" });
      if (stream === null) void openStream();
      schedule(RECONCILE_MS);
    } catch (error) {
      if (!isUnreachable(error))
        logger.error({ error: messageOf(error) }, "the engine refused to list containers");
      doubtfulSinceMs ??= performance.now();
      const doubtfulMs = performance.now() - doubtfulSinceMs;
      if (doubtfulMs >= lostAfterMs) {
        const message = `no answer from ${client.endpoint} for ${Math.round(doubtfulMs)} ms: ${messageOf(error)}`;
        for (const [, waiter] of asked) waiter.signal.resolve({ kind: "lost", message });
      }
      schedule(Math.min(DOUBTFUL_RETRY_MS, lostAfterMs / 4));
    } finally {
      isReconciling = false;
    }
  }

  function schedule(delayMs: number): void {
    clearTimeout(timer);
    if (isClosed || waiters.size === 0) return;
    timer = setTimeout(() => void reconcile(), delayMs);
  }

  function doubt(): void {
    if (waiters.size > 0) void reconcile();
  }

  return {
    watch(id) {
      const waiter: Waiter = { signal: Promise.withResolvers(), oomEvents: 0, signals: new Map() };
      waiters.set(id, waiter);
      if (waiters.size === 1) schedule(RECONCILE_MS);
      void openStream();
      return {
        signal: waiter.signal.promise,
        notifyEnded: () => waiter.signal.resolve({ kind: "ended" }),
        oomEvents: () => waiter.oomEvents,
        signals: () => [...waiter.signals.values()],
        release() {
          waiters.delete(id);
          if (waiters.size === 0) clearTimeout(timer);
        },
      };
    },
    doubt,
    close() {
      isClosed = true;
      clearTimeout(timer);
      stream?.destroy();
      for (const waiter of waiters.values()) {
        waiter.signal.resolve({ kind: "lost", message: "the connection to the engine was closed" });
      }
    },
  };
}

function readLines(source: Readable, onLine: (line: string) => void): void {
  let rest = "";
  source.setEncoding("utf8");
  source.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    // An endless line is no event; what it hid is found by the next reconcile.
    if (rest.length > MAX_EVENT_BYTES) rest = "";
    for (const line of lines) if (line !== "") onLine(line);
  });
}

export interface EngineEvent {
  readonly id: string;
  readonly action: string;
  readonly seconds: number | null;
  /** Of a kill: the signal's number; null where it is told otherwise. */
  readonly signal: number | null;
  /** The same for the same event. */
  readonly stamp: string;
}

/** Engines differ in old and new field names; both are read. Anything else is no event for us. */
export function parseEvent(line: string): EngineEvent | null {
  let raw: unknown;
  try {
    raw = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof raw !== "object" || raw === null) return null;
  const event = raw as {
    id?: unknown;
    Action?: unknown;
    status?: unknown;
    time?: unknown;
    timeNano?: unknown;
    Actor?: { ID?: unknown; Attributes?: { signal?: unknown } };
  };
  const id = event.Actor?.ID ?? event.id;
  const action = event.Action ?? event.status;
  if (typeof id !== "string" || typeof action !== "string") return null;
  const signal = event.Actor?.Attributes?.signal;
  return {
    id,
    action,
    seconds: typeof event.time === "number" ? event.time : null,
    signal: typeof signal === "string" && /^\d{1,2}$/.test(signal) ? Number(signal) : null,
    stamp: `${String(event.timeNano)} ${String(signal)}`,
  };
}
