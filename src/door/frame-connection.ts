/**
 * One connection that speaks newline-delimited JSON.
 *
 * Theory of operation. Bytes go into a FrameReader; `pump` takes frames out of it and starts them until something says stop: too many
 * in work, replies the peer does not read, or this turn's share used up. Then the socket is paused, so the kernel's buffer fills
 * and the peer blocks; a finished frame, a drained socket or the next turn pumps on.
 *
 *   open ──peer ends──▶ draining ──nothing in work──▶ ended (our side too)
 *   open ──oversize, stale half frame, finish()──▶ refusing: what is in work is answered, what still comes is thrown away unread,
 *                                                  for a short time and a bounded amount, so that the last reply arrives
 *
 * Replies leave as they finish, not in the order asked: JSON-RPC ids exist for that, and a slow file must not hold up a ping. Calls
 * that need no waiting do finish in order.
 */
import type { Socket } from "node:net";
import { formatError, rpcError } from "../protocol/json-rpc.ts";
import type { DoorConnection } from "./door.ts";
import { createClosedSignal, type DoorParts, NOT_UTF8_FRAME, type OpenConnection } from "./door-parts.ts";
import { createFrameReader, type ReadFrame } from "./frame-reader.ts";

/** A refused peer gets this long, and this much of what it still sends is read and dropped; a reset could cost it the last reply. */
const LINGER_MS = 1000;
const LINGER_BYTES = 16 * 1024 * 1024;

/** Serves a socket whose first byte said JSON; `first` are the bytes read so far. */
export function serveFrames(socket: Socket, id: number, first: Buffer, parts: DoorParts): OpenConnection {
  const { limits, handlers, turn, held } = parts;
  const reader = createFrameReader(limits.maxFrameBytes);
  const closedSignal = createClosedSignal(socket);
  let state: "open" | "draining" | "refusing" = "open";
  let inWork = 0;
  let isWaiting = false;
  let isCorked = false;
  let lingerBytes = 0;
  let farewell: string | undefined;
  let partialTimer: NodeJS.Timeout | undefined;
  let lingerTimer: NodeJS.Timeout | undefined;

  const connection: DoorConnection = {
    id,
    get closed() {
      return closedSignal();
    },
    send(frame) {
      write(frame);
      if (!socket.writableNeedDrain) return Promise.resolve();
      return new Promise((resolve) => {
        const settle = () => {
          socket.off("drain", settle);
          socket.off("close", settle);
          resolve();
        };
        socket.once("drain", settle);
        socket.once("close", settle);
      });
    },
  };

  function pump(): void {
    isWaiting = false;
    while (state !== "refusing" && !socket.destroyed) {
      if (inWork >= limits.maxInFlight || socket.writableNeedDrain) {
        holdReading();
        return;
      }
      if (!turn.tryTake()) {
        isWaiting = true;
        turn.whenFree(pump);
        holdReading();
        return;
      }
      const found = state === "draining" ? reader.end() : reader.next();
      if (!found) break;
      take(found);
    }
    if (state === "draining") endWhenIdle();
    else if (state === "open") {
      watchPartial();
      if (socket.isPaused()) socket.resume();
    }
  }

  /** The peer cannot send while it is not read, so a half frame does not age meanwhile. */
  function holdReading(): void {
    clearTimeout(partialTimer);
    partialTimer = undefined;
    socket.pause();
  }

  function take(found: ReadFrame): void {
    if (found.kind === "oversize") {
      refuse(LINGER_MS, handlers.oversize(limits.maxFrameBytes));
      return;
    }
    inWork += 1;
    const text = found.kind === "frame" ? found.text : NOT_UTF8_FRAME;
    handlers.frame(text, connection).then(finished, () => finished(undefined));
  }

  function finished(reply: string | undefined): void {
    inWork -= 1;
    if (reply !== undefined) write(reply);
    if (state === "refusing") endWhenIdle();
    else if (socket.isPaused() || state === "draining") pumpUnlessWaiting();
  }

  function pumpUnlessWaiting(): void {
    if (!isWaiting) pump();
  }

  /** Replies of one turn leave in one system call. */
  function write(frame: string): void {
    if (socket.destroyed || socket.writableEnded) return;
    if (!isCorked) {
      isCorked = true;
      socket.cork();
      process.nextTick(uncork);
    }
    socket.write(`${frame}\n`);
    if (socket.writableLength > limits.maxQueuedBytes || !countHeld()) socket.destroy();
  }

  function uncork(): void {
    isCorked = false;
    socket.uncork();
  }

  /** Small amounts are not worth counting: a pipe's worth per connection. */
  function countHeld(): boolean {
    const bytes = reader.partialBytes + (socket.writableNeedDrain ? socket.writableLength : 0);
    return held.set(connection, bytes < 4096 ? 0 : bytes);
  }

  function watchPartial(): void {
    if (reader.partialBytes === 0) {
      if (partialTimer) {
        clearTimeout(partialTimer);
        partialTimer = undefined;
        countHeld();
      }
      return;
    }
    if (!countHeld()) {
      socket.destroy();
      return;
    }
    // The time counts from the first byte of the frame: a byte now and then does not prolong it.
    partialTimer ??= setTimeout(() => {
      const message = `half a frame came and no end of it within ${limits.partialFrameTimeoutMs} ms; the connection is closed`;
      refuse(LINGER_MS, formatError(null, rpcError("partial-frame", message)));
    }, limits.partialFrameTimeoutMs);
  }

  /** Takes no more frames, answers those in work, says `lastWords`, ends; then the peer has `lingerMs` to stop sending. */
  function refuse(lingerMs: number, lastWords?: string): void {
    if (state === "refusing") return;
    state = "refusing";
    clearTimeout(partialTimer);
    socket.once("finish", () => {
      clearTimeout(lingerTimer);
      lingerTimer = setTimeout(() => socket.destroy(), lingerMs);
    });
    // The same for a peer that does not read what it is told.
    lingerTimer = setTimeout(() => socket.destroy(), limits.partialFrameTimeoutMs);
    farewell = lastWords;
    endWhenIdle();
    socket.resume();
  }

  function endWhenIdle(): void {
    if (inWork > 0 || socket.writableEnded || socket.destroyed) return;
    if (farewell !== undefined) write(farewell);
    if (isCorked) uncork();
    socket.end();
  }

  socket.on("data", (chunk: Buffer) => {
    if (state === "refusing") {
      lingerBytes += chunk.length;
      if (lingerBytes > LINGER_BYTES) socket.destroy();
      return;
    }
    reader.push(chunk);
    pumpUnlessWaiting();
  });
  socket.on("end", () => {
    if (state === "open") {
      state = "draining";
      clearTimeout(partialTimer);
      pumpUnlessWaiting();
    }
  });
  socket.on("drain", () => {
    countHeld();
    if (state !== "refusing") pumpUnlessWaiting();
  });
  socket.on("close", () => {
    clearTimeout(partialTimer);
    clearTimeout(lingerTimer);
    held.set(connection, 0);
  });

  reader.push(first);
  pump();
  return { finish: () => refuse(0) };
}
