/**
 * The HTTP side of a door: `POST /rpc` carries one frame per request, other paths go to the handlers that the door was given. The
 * server never listens; connections are handed to it as streams that give one request at a time.
 *
 * LIMITATION: over HTTP nothing can be pushed, so `connection.send` rejects there.
 */
import { isUtf8 } from "node:buffer";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { RunnerError } from "../model/runner-error.ts";
import type { DoorConnection } from "./door.ts";
import { createClosedSignal, type DoorParts, NOT_UTF8_FRAME, type OpenConnection } from "./door-parts.ts";
import { createPacedStream } from "./paced-stream.ts";

export interface HttpEntry {
  /** Takes a socket whose first bytes are `first`. */
  serve(socket: Socket, id: number, first: Buffer): OpenConnection;
  close(): void;
}

const RPC_PATH = "/rpc";
/** How much of a body over the limit is read and dropped before the refusal. */
const DROPPED_BYTES = 16 * 1024 * 1024;

/** Makes the HTTP side of one door. */
export function createHttpEntry(parts: DoorParts): HttpEntry {
  const { limits, handlers } = parts;
  const routes = [...(handlers.http ?? [])].sort((a, b) => b.prefix.length - a.prefix.length);
  const connections = new WeakMap<object, HttpConnection>();
  const server = createServer({
    headersTimeout: limits.partialFrameTimeoutMs,
    requestTimeout: limits.partialFrameTimeoutMs,
    connectionsCheckingInterval: Math.max(10, Math.min(1000, Math.round(limits.partialFrameTimeoutMs / 4))),
    maxHeaderSize: 16 * 1024,
  });
  enforceTimeLimits(server);

  server.on("request", route);
  // A body that will be refused anyway is not asked for.
  server.on("checkContinue", (request, response) => {
    if (declaredBytes(request) <= limits.maxFrameBytes) response.writeContinue();
    route(request, response);
  });
  server.on("connect", (_request, socket) => {
    socket.end("HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  });

  function route(request: IncomingMessage, response: ServerResponse): void {
    const connection = connections.get(request.socket);
    if (!connection) {
      response.destroy();
      return;
    }
    connection.begin(request, response);
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    if (path === RPC_PATH) {
      void answerRpc(request, response, connection.peer, parts);
      return;
    }
    const found = routes.find(({ prefix }) => path.startsWith(prefix));
    if (found) found.handle(request, response);
    else {
      const known = ["POST /rpc", ...routes.map(({ prefix }) => prefix)];
      replyJson(response, 404, { error: `nothing is at ${path.slice(0, 100)} behind this door`, known });
    }
  }

  return {
    serve(socket, id, first) {
      const connection = createHttpConnection(socket, id, first, parts);
      connections.set(connection.stream, connection);
      server.emit("connection", connection.stream);
      return connection;
    },
    close() {
      server.close();
    },
  };
}

interface HttpConnection extends OpenConnection {
  readonly peer: DoorConnection;
  readonly stream: Duplex;
  begin(request: IncomingMessage, response: ServerResponse): void;
}

function createHttpConnection(
  socket: Socket,
  id: number,
  first: Buffer,
  { turn }: DoorParts,
): HttpConnection {
  const closedSignal = createClosedSignal(socket);
  let latest: IncomingMessage | undefined;
  let inWork = 0;
  let isFinishing = false;
  const { stream, feed } = createPacedStream(socket, {
    first,
    turn,
    // The rest of the request in work, not the next one: pipelined requests are answered one by one. Two are in work where one portion
    // held the end of a body and the head behind it.
    mayFeed: () => inWork === 0 || (inWork === 1 && latest?.complete === false),
  });
  return {
    stream,
    peer: {
      id,
      get closed() {
        return closedSignal();
      },
      send: () =>
        Promise.reject(new RunnerError("usage", "an HTTP connection cannot be pushed to; use frames")),
    },
    begin(request, response) {
      latest = request;
      inWork += 1;
      if (isFinishing) response.setHeader("Connection", "close");
      response.once("close", () => {
        inWork -= 1;
        if (isFinishing && inWork === 0) stream.end();
        else feed();
      });
    },
    finish() {
      isFinishing = true;
      if (inWork === 0) stream.end();
    },
  };
}

async function answerRpc(
  request: IncomingMessage,
  response: ServerResponse,
  peer: DoorConnection,
  parts: DoorParts,
): Promise<void> {
  const { limits, handlers, held } = parts;
  if (request.method !== "POST") {
    response.setHeader("Allow", "POST");
    replyJson(response, 405, { error: "only POST /rpc takes calls", known: ["POST /rpc"] });
    return;
  }
  const body = await readBody(request, parts);
  held.set(request, 0);
  if (body === "gone") return;
  if (body === "oversize") {
    response.setHeader("Connection", "close");
    replyText(response, 413, handlers.oversize(limits.maxFrameBytes));
    return;
  }
  const text = isUtf8(body) ? body.toString("utf8") : NOT_UTF8_FRAME;
  const reply = await handlers.frame(text, peer).catch(() => undefined);
  if (reply === undefined) {
    response.writeHead(204).end();
    return;
  }
  // Counted until the peer has taken it.
  if (!held.set(response, reply.length)) {
    held.set(response, 0);
    response.destroy();
    return;
  }
  response.once("close", () => held.set(response, 0));
  replyText(response, 200, reply);
}

function declaredBytes(request: IncomingMessage): number {
  return Number(request.headers["content-length"] ?? 0);
}

/**
 * The whole body, or why there is none. Never holds more than `maxBytes`. What is over it is read and dropped, for a while: most clients
 * look for an answer only when they have sent everything.
 */
function readBody(
  request: IncomingMessage,
  { limits: { maxFrameBytes: maxBytes }, held }: DoorParts,
): Promise<Buffer | "oversize" | "gone"> {
  if (request.headers.expect !== undefined && declaredBytes(request) > maxBytes) {
    return Promise.resolve("oversize");
  }
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      else chunks.length = 0;
      if (bytes > maxBytes + DROPPED_BYTES) resolve("oversize");
      if (!held.set(request, bytes > maxBytes ? 0 : bytes)) request.destroy();
    });
    request.once("end", () => resolve(bytes > maxBytes ? "oversize" : Buffer.concat(chunks)));
    request.once("close", () => resolve("gone"));
    request.once("error", () => resolve("gone"));
  });
}

function replyJson(response: ServerResponse, status: number, body: object): void {
  replyText(response, status, JSON.stringify(body));
}

function replyText(response: ServerResponse, status: number, text: string): void {
  const body = Buffer.from(`${text}\n`);
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": body.length }).end(body);
}

/** Node starts the check of head and request time limits when a server begins to listen, which this one never does. */
function enforceTimeLimits(server: Server): void {
  server.emit("listening");
}
