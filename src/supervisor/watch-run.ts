import type { DoorConnection } from "../door/door.ts";
import type { EventStore } from "../store/store.ts";
import { createDeferred } from "../util/deferred.ts";
import type { OutputPiece, RunController } from "./run-controller.ts";

export interface WatchWants {
  readonly afterSeq: number;
  readonly output: boolean;
  readonly samples: boolean;
}

/** Characters of live output kept for a watcher that reads slowly; the log file on disk has all of it. */
const MAX_QUEUED_OUTPUT = 1024 * 1024;
const SAMPLE_INTERVAL_MS = 1_000;

/**
 * Pushes a run's events to one connection until the run has settled or the peer is gone: each event once, in order, read from the
 * log by cursor, so a slow peer costs no memory. Live output is best effort and bounded. Ends with `run.settled`.
 */
export async function watchRun(
  store: EventStore,
  run: RunController,
  connection: DoorConnection,
  wants: WatchWants,
): Promise<void> {
  const { runId } = run.settings;
  let wake = createDeferred<void>();
  let cursor = wants.afterSeq;
  let isSettled = false;
  const output = createOutputQueue();
  const stops: Array<() => void> = [];
  const send = (method: string, params: unknown): Promise<void> =>
    connection.send(JSON.stringify({ jsonrpc: "2.0", method, params }));

  stops.push(
    store.subscribe((logged) => {
      if (logged.runId === runId) wake.resolve();
    }),
  );
  if (wants.output) {
    stops.push(
      run.onOutput((piece) => {
        output.push(piece);
        wake.resolve();
      }),
    );
  }
  if (wants.samples) {
    const timer = setInterval(() => {
      void run.samples().then(
        (samples) => (samples.length > 0 ? send("run.sample", { at_ms: Date.now(), samples }) : undefined),
        () => undefined /* a sample that cannot be taken or sent is simply missing */,
      );
    }, SAMPLE_INTERVAL_MS);
    stops.push(() => clearInterval(timer));
  }
  run.settled.then(
    () => {
      isSettled = true;
      wake.resolve();
    },
    () => {
      isSettled = true;
      wake.resolve();
    },
  );
  connection.closed.addEventListener("abort", () => wake.resolve());

  try {
    while (!connection.closed.aborted) {
      wake = createDeferred<void>();
      const wasSettled = isSettled;
      if (wasSettled) store.flush();
      // Output first: what an attempt printed comes before the event of its end.
      for (const piece of output.take()) await send("run.output", piece);
      for (const logged of store.read(runId, cursor)) {
        await send("run.event", logged);
        cursor = logged.seq;
        if (connection.closed.aborted) return;
      }
      if (wasSettled) {
        await send("run.settled", {});
        return;
      }
      await wake.promise;
    }
  } finally {
    for (const stop of stops) stop();
  }
}

function createOutputQueue(): { push(piece: OutputPiece): void; take(): readonly OutputPiece[] } {
  let pieces: OutputPiece[] = [];
  let size = 0;
  return {
    push(piece) {
      pieces.push(piece);
      size += piece.text.length;
      while (size > MAX_QUEUED_OUTPUT && pieces.length > 1) size -= pieces.shift()?.text.length ?? 0;
    },
    take() {
      const taken = pieces;
      pieces = [];
      size = 0;
      return taken;
    },
  };
}
