/**
 * A small client for the door, without dependencies: used by `bulkhead-bus` inside the container and by puppet agents in tests.
 * One connection, any number of calls in flight, answers matched by id.
 */
import { createConnection, type Socket } from "node:net";
import type { BusMethodName, BusParams, BusResult } from "../protocol/bus-methods.ts";

export const DEFAULT_DOOR_PATH = "/run/bulkhead/door.sock";
const DEFAULT_TIMEOUT_MS = 60_000;
/** The bus answers with at most 4 Mi characters; anything longer is no bus. */
const MAX_REPLY_BYTES = 32 * 1024 * 1024;

/** The bus answered with an error. */
export class BusRefusal extends Error {
  override readonly name = "BusRefusal";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** The door cannot be reached, or the connection ended before the answer. */
export class DoorUnreachable extends Error {
  override readonly name = "DoorUnreachable";
}

export interface AgentClient {
  /** Calls a method of the bus; rejects with BusRefusal or DoorUnreachable. */
  call<M extends BusMethodName>(method: M, params: BusParams<M>): Promise<BusResult<M>>;
  /** The same for any method name and params, unchecked. */
  callRaw(method: string, params?: unknown): Promise<unknown>;
  /** Sends a notification: no answer comes, not even an error. */
  notify<M extends BusMethodName>(method: M, params: BusParams<M>): void;
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
  close(): void;
}

export interface ConnectOptions {
  /** Default: `BULKHEAD_DOOR`, else /run/bulkhead/door.sock. */
  readonly socketPath?: string;
  readonly timeoutMs?: number;
}

interface PendingCall {
  resolve(value: unknown): void;
  reject(reason: Error): void;
  readonly timer: NodeJS.Timeout;
}

/** Connects to the door. */
export async function connect(options: ConnectOptions = {}): Promise<AgentClient> {
  const socketPath = options.socketPath ?? process.env["BULKHEAD_DOOR"] ?? DEFAULT_DOOR_PATH;
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const socket = await open(socketPath, timeoutMs);
  const pending = new Map<number, PendingCall>();
  let lastId = 0;
  let chunks: Buffer[] = [];
  let chunkBytes = 0;

  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => {
      rejectAll(new DoorUnreachable("the connection to the door ended before the answer came"));
      resolve();
    });
  });
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const piece = chunk.subarray(start, end);
      const line = chunkBytes === 0 ? piece : Buffer.concat([...chunks, piece]);
      chunks = [];
      chunkBytes = 0;
      start = end + 1;
      receive(line.toString("utf8"));
    }
    if (start === chunk.length) return;
    chunks.push(chunk.subarray(start));
    chunkBytes += chunk.length - start;
    if (chunkBytes > MAX_REPLY_BYTES) socket.destroy();
  });

  function receive(line: string): void {
    let reply: { id?: unknown; result?: unknown; error?: { code: number; message: string; data?: unknown } };
    try {
      reply = JSON.parse(line);
    } catch {
      // Not a bus behind this socket; the calls end with "the connection ended".
      socket.destroy();
      return;
    }
    const { id, result, error } = reply;
    const refusal = error && new BusRefusal(error.code, error.message, error.data);
    if (typeof id !== "number") {
      // An error without an id concerns the connection (too large, too many): no call of it will be answered.
      if (refusal) rejectAll(refusal);
      return;
    }
    const call = pending.get(id);
    if (!call) return;
    pending.delete(id);
    clearTimeout(call.timer);
    if (refusal) call.reject(refusal);
    else call.resolve(result);
  }

  function rejectAll(reason: Error): void {
    for (const call of pending.values()) {
      clearTimeout(call.timer);
      call.reject(reason);
    }
    pending.clear();
  }

  function callRaw(method: string, params?: unknown): Promise<unknown> {
    if (socket.destroyed) return Promise.reject(new DoorUnreachable("the connection to the door is closed"));
    lastId += 1;
    const id = lastId;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        pending.delete(id);
        reject(new DoorUnreachable(`the bus did not answer ${method} within ${timeoutMs} ms`));
      }, timeoutMs);
      pending.set(id, { resolve, reject, timer });
      socket.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  }

  return {
    call: (method, params) => callRaw(method, params) as Promise<BusResult<typeof method>>,
    callRaw,
    notify(method, params) {
      socket.write(`${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`);
    },
    closed,
    close() {
      socket.end();
      socket.destroySoon();
    },
  };
}

const NEWLINE = 0x0a;

function open(socketPath: string, timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(socketPath);
    const fail = (why: string) => {
      socket.destroy();
      reject(new DoorUnreachable(`cannot reach the door at ${socketPath}: ${why}`));
    };
    const timer = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs);
    const onError = (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      fail(error.code ?? error.message);
    };
    socket.once("error", onError);
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.off("error", onError);
      resolve(socket);
    });
  });
}
