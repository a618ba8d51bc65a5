import { createConnection } from "node:net";
import { badFrame } from "./bad-frames.ts";

export interface BadFramesFigures {
  readonly sent: number;
  readonly replies: number;
  /** Replies that are no JSON-RPC error. */
  readonly wrong: number;
}

/** Sends `count` bad frames over one connection, pipelined, and reads what comes back; `onQuarter` is told after each quarter of them. */
export function sendBadFrames(
  socketPath: string,
  count: number,
  onQuarter: () => void,
): Promise<BadFramesFigures> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path: socketPath, allowHalfOpen: true });
    let sent = 0;
    let replies = 0;
    let wrong = 0;
    let quarter = 0;
    let rest = "";
    // The first byte must say JSON.
    socket.write('{"first":1}\n');
    const fill = () => {
      while (sent < count) {
        const batch: Buffer[] = [];
        for (; batch.length < 200 && sent < count; sent += 1) batch.push(badFrame(sent), NEWLINE);
        for (; quarter < 4 && sent >= ((quarter + 1) * count) / 4; quarter += 1) onQuarter();
        if (!socket.write(Buffer.concat(batch))) return void socket.once("drain", fill);
      }
      socket.end();
    };
    socket.setEncoding("utf8");
    socket.on("data", (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        replies += 1;
        if (!/^\{"jsonrpc":"2.0","id":.*,"error":\{"code":-?\d+,"message":".*\}\}?$/.test(line)) wrong += 1;
      }
    });
    socket.once("end", () => resolve({ sent, replies: replies - 1, wrong }));
    socket.once("error", reject);
    fill();
  });
}

const NEWLINE = Buffer.from("\n");
