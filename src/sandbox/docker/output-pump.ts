/**
 * Takes the engine's multiplexed output apart and hands it to a sink: byte exact, in order, in bounded memory.
 *
 * Theory of operation. Each frame is an 8 byte header (stream 1 or 2, three zero bytes, length big-endian) and its
 * payload. Payload is passed on in the pieces it arrives in, never joined. Up to READ_AHEAD bytes wait for a slow sink;
 * past that the socket is paused, the engine's buffers fill, and the program inside blocks on its write.
 *
 * LIMITATION: an engine gives up on a reader two seconds after the container has ended. A sink that is still stalled
 * then, with a full read-ahead, loses what is left in the engine's pipes (at most some hundred KiB).
 */
import type { Readable } from "node:stream";
import type { OutputChunk, OutputSink } from "../sandbox.ts";

const READ_AHEAD_BYTES = 1024 * 1024;
const HEADER_BYTES = 8;

export interface OutputPump {
  /** Resolves when the stream has ended and the sink has taken everything, or with the reason it stopped early. */
  readonly done: Promise<PumpEnd>;
  /** Waits for `done`, but not longer than `idleMs` without a byte while the sink is not busy; then lets go. */
  drain(idleMs: number): Promise<PumpEnd>;
}

export type PumpEnd =
  | { readonly kind: "complete" }
  | { readonly kind: "held-open" }
  | { readonly kind: "broken"; readonly message: string };

/** Starts reading at once. A sink that throws ends the output; the stream is still read to its end and dropped. */
export function pumpOutput(source: Readable, sink: OutputSink): OutputPump {
  const finished = Promise.withResolvers<PumpEnd>();
  let queue: OutputChunk[] = [];
  const parse = createFrameParser((stream, bytes) => {
    queue.push({ stream, bytes });
    queuedBytes += bytes.length;
  });
  let queuedBytes = 0;
  let isDelivering = false;
  let isOver = false;
  let broken: string | null = null;
  let onProgress: () => void = () => undefined;

  async function deliver(): Promise<void> {
    if (isDelivering) return;
    isDelivering = true;
    while (queue.length > 0) {
      const batch = queue;
      queue = [];
      for (const chunk of batch) {
        // Awaited only where there is something to wait for: a quick sink costs no turn of the event loop.
        const slow = broken === null ? offer(chunk) : undefined;
        if (slow !== undefined) await slow;
        queuedBytes -= chunk.bytes.length;
        if (queuedBytes < READ_AHEAD_BYTES / 2 && source.isPaused()) source.resume();
      }
      onProgress();
    }
    isDelivering = false;
    if (isOver) settle();
  }

  function offer(chunk: OutputChunk): Promise<void> | undefined {
    try {
      return sink(chunk)?.catch(stop);
    } catch (error) {
      stop(error);
      return undefined;
    }
  }

  function stop(reason: unknown): void {
    broken ??= reason instanceof Error ? reason.message : String(reason);
  }

  function settle(): void {
    finished.resolve(broken === null ? { kind: "complete" } : { kind: "broken", message: broken });
  }

  source.on("data", (chunk: Buffer) => {
    onProgress();
    if (broken !== null) return;
    if (!parse(chunk)) stop("the engine's output stream is damaged: bad frame header");
    if (queuedBytes > READ_AHEAD_BYTES) source.pause();
    void deliver();
  });
  const onOver = () => {
    isOver = true;
    if (!isDelivering) settle();
  };
  source.on("end", onOver);
  source.on("close", onOver);
  // A reset counts as the end: whether the container ended too is the exit watch's question.
  source.on("error", onOver);

  return {
    done: finished.promise,
    async drain(idleMs) {
      const held = Promise.withResolvers<PumpEnd>();
      let timer: NodeJS.Timeout;
      const onIdle = () => {
        if (isDelivering) timer = setTimeout(onIdle, idleMs);
        else held.resolve({ kind: "held-open" });
      };
      timer = setTimeout(onIdle, idleMs);
      onProgress = () => timer.refresh();
      const end = await Promise.race([finished.promise, held.promise]);
      clearTimeout(timer);
      onProgress = () => undefined;
      source.destroy();
      return end;
    },
  };
}

/** Incremental parser; answers false once the stream cannot be understood any more. */
export function createFrameParser(
  onBytes: (stream: "stdout" | "stderr", bytes: Buffer) => void,
): (chunk: Buffer) => boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerFill = 0;
  let stream: "stdout" | "stderr" = "stdout";
  let left = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (left > 0) {
        const bytes = chunk.subarray(at, at + left);
        left -= bytes.length;
        at += bytes.length;
        onBytes(stream, bytes);
        continue;
      }
      const copied = chunk.copy(header, headerFill, at, at + HEADER_BYTES - headerFill);
      headerFill += copied;
      at += copied;
      if (headerFill < HEADER_BYTES) continue;
      headerFill = 0;
      const kind = header[0];
      if ((kind !== 1 && kind !== 2) || header[1] !== 0 || header[2] !== 0 || header[3] !== 0) return false;
      stream = kind === 1 ? "stdout" : "stderr";
      left = header.readUInt32BE(4);
    }
    return true;
  };
}
