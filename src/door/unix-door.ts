/**
 * A door on a Unix socket: see `door.ts` for the contract.
 *
 * Theory of operation. One listener, one identity. A new connection is counted, then looked at: leading white space is dropped, `{` or `[`
 * makes it a stream of frames, anything else is HTTP. Until that first byte nothing is kept, so an idle connection costs a
 * descriptor and no more.
 *
 * Trust: every byte is hostile. All that a peer can make the host keep is bounded: connections, begun frames, frames in work,
 * unread replies (each per connection and, together, per door), and time for half a frame or half a head.
 */
import { createServer, type Socket } from "node:net";
import { formatError, rpcError } from "../protocol/json-rpc.ts";
import { createDeferred } from "../util/deferred.ts";
import { DEFAULT_DOOR_LIMITS, type Door, type DoorLimits, type OpenDoor } from "./door.ts";
import type { DoorParts, OpenConnection } from "./door-parts.ts";
import { serveFrames } from "./frame-connection.ts";
import { createHeldBytes } from "./held-bytes.ts";
import { createHttpEntry } from "./http-entry.ts";
import { bindSocket, checkNobodyListens, checkSocketPath } from "./socket-file.ts";
import { createTurnBudget } from "./turn-budget.ts";

/** Frames of one door started per turn of the event loop: about a quarter of a millisecond of work. */
const FRAMES_PER_TURN = 32;
/** A door holds at most this many times what one connection may have queued. */
const QUEUES_PER_DOOR = 4;
const DEFAULT_GRACE_MS = 2000;

/** Opens a door on `socketPath`; a socket left there by a dead process is replaced, a live one is refused. */
export const openDoor: OpenDoor = async ({ socketPath, mode, handlers, limits: given }) => {
  checkSocketPath(socketPath);
  await checkNobodyListens(socketPath);
  const limits: DoorLimits = { ...DEFAULT_DOOR_LIMITS, ...given };
  const parts: DoorParts = {
    limits,
    handlers,
    turn: createTurnBudget(FRAMES_PER_TURN),
    held: createHeldBytes(limits.maxQueuedBytes * QUEUES_PER_DOOR),
  };
  const http = createHttpEntry(parts);
  /** Undefined while the first byte has not come. */
  const open = new Map<Socket, OpenConnection | undefined>();
  let lastId = 0;
  const emptied = createDeferred<void>();
  let isClosing = false;
  let closed: Promise<void> | undefined;

  function accept(socket: Socket): void {
    // A peer that vanishes is no error of ours; "close" follows and cleans up.
    socket.on("error", () => socket.destroy());
    if (isClosing) {
      socket.destroy();
      return;
    }
    if (open.size >= limits.maxConnections) {
      turnAway(socket, limits.maxConnections);
      return;
    }
    open.set(socket, undefined);
    socket.once("close", () => {
      open.delete(socket);
      if (isClosing && open.size === 0) emptied.resolve();
    });
    lastId += 1;
    sniff(socket, lastId);
  }

  function sniff(socket: Socket, id: number): void {
    const onEnd = () => socket.end();
    const onData = (chunk: Buffer) => {
      const start = chunk.findIndex((byte) => !isWhiteSpace(byte));
      if (start === -1) return;
      socket.off("data", onData);
      socket.off("end", onEnd);
      socket.pause();
      const first = start === 0 ? chunk : chunk.subarray(start);
      const speaksFrames = first[0] === OPEN_BRACE || first[0] === OPEN_BRACKET;
      open.set(socket, speaksFrames ? serveFrames(socket, id, first, parts) : http.serve(socket, id, first));
    };
    socket.on("data", onData);
    socket.once("end", onEnd);
  }

  async function close(graceMs: number): Promise<void> {
    bound.remove();
    const drained = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const [socket, connection] of open) {
      if (connection) connection.finish();
      else socket.destroy();
    }
    const force = setTimeout(() => {
      for (const socket of open.keys()) socket.destroy();
    }, graceMs);
    await drained;
    // The listener is done when the last socket is destroyed, a little before that socket is closed.
    if (open.size > 0) await emptied.promise;
    clearTimeout(force);
    http.close();
  }

  const server = createServer({ allowHalfOpen: true, noDelay: false }, accept);
  const bound = await bindSocket(server, socketPath, mode);
  // Out of descriptors, say: this one peer is not served, the next may be.
  server.on("error", () => undefined);

  const door: Door = {
    socketPath,
    get connections() {
      return open.size;
    },
    close(graceMs = DEFAULT_GRACE_MS) {
      isClosing = true;
      closed ??= close(graceMs);
      return closed;
    },
  };
  return door;
};

const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

function isWhiteSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** One line for people and programs, then the end: what the peer sends is not looked at. */
function turnAway(socket: Socket, maxConnections: number): void {
  const message = `this door takes ${maxConnections} connections at once and has them; close one and try again`;
  socket.resume();
  socket.end(`${formatError(null, rpcError("too-many-connections", message, { maxConnections }))}\n`, () =>
    socket.destroy(),
  );
}
