/**
 * The face of `door/`: a listener on one Unix socket. It accepts connections, bounds them, knows whose they are (one socket,
 * one identity: row D3) and hands frames to the handlers it was given. It knows bytes, frames and HTTP; it does not know JSON-RPC
 * methods, tasks or models.
 *
 * The first byte decides (design, decision 3): `{` means newline-delimited JSON, anything else HTTP/1.1 where `POST /rpc` carries
 * one frame and other paths go to `http` handlers by prefix. The supervisor's own socket uses the same code.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

export interface DoorLimits {
  /** Longest frame or HTTP body, bytes. */
  readonly maxFrameBytes: number;
  readonly maxConnections: number;
  /** Frames of one connection in work at once; beyond it the connection is not read. */
  readonly maxInFlight: number;
  /** A connection that has sent half a frame or half a head is closed after this. */
  readonly partialFrameTimeoutMs: number;
  /** Bytes queued to a peer that does not read; beyond it the connection is closed. */
  readonly maxQueuedBytes: number;
}

export const DEFAULT_DOOR_LIMITS: DoorLimits = {
  maxFrameBytes: 1024 * 1024,
  maxConnections: 64,
  maxInFlight: 64,
  partialFrameTimeoutMs: 30_000,
  maxQueuedBytes: 8 * 1024 * 1024,
};

/** One peer, for handlers that push (event streams to a command line). */
export interface DoorConnection {
  readonly id: number;
  /** Aborted when the peer is gone. */
  readonly closed: AbortSignal;
  /** Sends one frame (newline added); resolves when the peer's buffer has room again. */
  send(frame: string): Promise<void>;
}

export interface DoorHandlers {
  /** Answers one frame (text without the newline); undefined sends nothing (a notification). MUST NOT reject. */
  frame(text: string, connection: DoorConnection): Promise<string | undefined>;
  /** What to answer to a frame over `maxFrameBytes`; the connection is closed after it. */
  oversize(limitBytes: number): string;
  /** HTTP handlers by path prefix, longest first; `/rpc` is the door's own. */
  readonly http?: ReadonlyArray<{
    readonly prefix: string;
    handle(request: IncomingMessage, response: ServerResponse): void;
  }>;
}

export interface Door {
  readonly socketPath: string;
  readonly connections: number;
  /** Stops accepting, lets frames in work finish for `graceMs`, closes, removes the socket (never its directory). */
  close(graceMs?: number): Promise<void>;
}

export interface DoorOptions {
  /** Absolute path, at most 107 bytes. */
  readonly socketPath: string;
  /** Mode of the socket file: 0o666 lets the container's uid in (its directory is private), 0o600 for the supervisor. */
  readonly mode: number;
  readonly limits?: Partial<DoorLimits>;
  readonly handlers: DoorHandlers;
}

/** Opens a door: `openDoor` in `unix-door.ts`. */
export type OpenDoor = (options: DoorOptions) => Promise<Door>;
