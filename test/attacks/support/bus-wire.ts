/** Raw bytes to a door, and what comes back. */
import { once } from "node:events";
import { createConnection } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** Long enough for an answer that comes; what does not come in this time is taken not to. */
export const PATIENCE_MS = 1_500;

/** Sends bytes and gives what came back until the peer closed, `until` was seen, or the patience ended. */
export async function exchange(
  socketPath: string,
  bytes: string | readonly string[],
  until: (received: string) => boolean = (received) => received.endsWith("\n"),
  patienceMs = PATIENCE_MS,
): Promise<{ received: string; stillOpen: boolean }> {
  const socket = createConnection(socketPath);
  let received = "";
  let isClosed = false;
  socket.setEncoding("utf8");
  socket.on("data", (text: string) => {
    received += text;
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    isClosed = true;
  });
  await once(socket, "connect");
  for (const part of typeof bytes === "string" ? [bytes] : bytes) {
    if (isClosed) break;
    if (!socket.write(part))
      await Promise.race([once(socket, "drain"), once(socket, "close")]).catch(() => {});
  }
  const end = performance.now() + patienceMs;
  while (!isClosed && !until(received) && performance.now() < end) await delay(20);
  const stillOpen = !isClosed;
  socket.destroy();
  return { received, stillOpen };
}

export const call = (method: string, params: object, id: number | null = 1) =>
  `${JSON.stringify({ jsonrpc: "2.0", ...(id === null ? {} : { id }), method, params })}\n`;
export const post = (body: string, headers = "") =>
  `POST /rpc HTTP/1.1\r\nHost: door\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;

/** Sends a call that never ends, a byte at a time; true if the door let it. */
export async function drip(socketPath: string): Promise<boolean> {
  const socket = createConnection(socketPath);
  let isClosed = false;
  socket.on("error", () => undefined);
  socket.on("close", () => {
    isClosed = true;
  });
  socket.resume();
  socket.write('{"jsonrpc"');
  for (let index = 0; index < 20 && !isClosed; index += 1) {
    socket.write("x");
    await delay(50);
  }
  socket.destroy();
  return !isClosed;
}
