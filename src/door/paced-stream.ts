/**
 * A socket that gives its bytes to an HTTP parser in small portions.
 *
 * Node's parser takes all that is read, 64 KiB at a time, and starts every request in it at once: a peer that pipelines a thousand small
 * requests would hold up the whole process and pile up requests without bound. Here a portion ends at the latest where a request head
 * ends, each portion costs a share of the door's turn, and none is given while `mayFeed` says no.
 */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { TurnBudget } from "./turn-budget.ts";

export interface PacedStream {
  /** What the HTTP server takes for the connection. */
  readonly stream: Duplex;
  /** Says that `mayFeed` may have changed. */
  feed(): void;
}

export interface PacedStreamOptions {
  /** The bytes that were read before. */
  readonly first: Buffer;
  readonly turn: TurnBudget;
  mayFeed(): boolean;
}

/** A body in tiny chunks costs by the chunk; this many bytes hold a bounded number of them. */
const MAX_PORTION_BYTES = 4096;
/** A request costs several times what a frame costs. */
const TURN_SHARE = 4;
/** How long a peer that was told the end may keep its side open. */
const LINGER_MS = 1000;

/** Wraps a paused socket. */
export function createPacedStream(socket: Socket, options: PacedStreamOptions): PacedStream {
  let pending = options.first;
  let isWanted = false;
  let isWaiting = false;
  let hasEnded = false;
  let lingerTimer: NodeJS.Timeout | undefined;

  function feed(): void {
    while (isWanted && !isWaiting && pending.length > 0 && options.mayFeed()) {
      if (!options.turn.tryTake(TURN_SHARE)) {
        isWaiting = true;
        options.turn.whenFree(() => {
          isWaiting = false;
          feed();
        });
        return;
      }
      const bytes = portionBytes(pending);
      const portion = pending.subarray(0, bytes);
      pending = pending.subarray(bytes);
      isWanted = stream.push(portion);
    }
    if (!isWanted || pending.length > 0) return;
    if (hasEnded) {
      // Told early, the HTTP server would drop the request in work.
      if (options.mayFeed()) stream.push(null);
    } else if (socket.isPaused()) socket.resume();
  }

  const stream = new Duplex({
    // The parser must have seen a portion before the next one is considered.
    readableHighWaterMark: 1,
    read() {
      isWanted = true;
      feed();
    },
    write(chunk: Buffer, _encoding, done) {
      socket.write(chunk, done);
    },
    writev(parts, done) {
      socket.cork();
      const chunks = parts.map(({ chunk }) => chunk as Buffer);
      for (const [index, chunk] of chunks.entries()) {
        if (index === chunks.length - 1) socket.write(chunk, done);
        else socket.write(chunk);
      }
      socket.uncork();
    },
    final(done) {
      socket.end(done);
      lingerTimer = setTimeout(() => socket.destroy(), LINGER_MS);
    },
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  // The HTTP server has its own listener and answers what can be answered; nothing is left to do here.
  stream.on("error", () => undefined);
  socket.on("data", (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    socket.pause();
    feed();
  });
  socket.on("end", () => {
    hasEnded = true;
    feed();
  });
  socket.on("close", () => {
    clearTimeout(lingerTimer);
    stream.destroy();
  });
  return { stream, feed };
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** How many bytes to give: through the first empty line, where a head may end. */
function portionBytes(bytes: Buffer): number {
  const end = Math.min(bytes.length, MAX_PORTION_BYTES);
  for (let at = bytes.indexOf(NEWLINE); at !== -1 && at < end; at = bytes.indexOf(NEWLINE, at + 1)) {
    const next = bytes[at + 1] === RETURN ? at + 2 : at + 1;
    if (next < end && bytes[next] === NEWLINE) return next + 1;
  }
  return end;
}
