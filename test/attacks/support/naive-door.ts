/**
 * What a quick implementation of a task's socket looks like: it believes what callers say, joins paths, keeps what it is sent. The
 * unprotected side of the attacks on the bus.
 */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";

export interface NaiveDoor {
  readonly socketPath: string;
  /** Every status and log entry, under the task that it was taken to come from. */
  readonly recorded: Array<{ readonly task: string; readonly method: string }>;
  close(): void;
}

interface Call {
  readonly id?: unknown;
  readonly method: string;
  readonly params?: Record<string, unknown>;
}

/** Opens one in `directory`, which has a folder for each task's files and one for artifacts. */
export async function openNaiveDoor(directory: string): Promise<NaiveDoor> {
  const recorded: NaiveDoor["recorded"] = [];
  const sockets = new Set<Socket>();

  function answer(call: Call, claimed: string | undefined): unknown {
    const params = merge({}, call.params ?? {}) as Record<string, string | undefined>;
    const task = claimed ?? params["task"] ?? "attacker";
    switch (call.method) {
      case "get_file":
        return {
          content: readFileSync(join(directory, params["task_id"] ?? task, params["path"] ?? ""), "utf8"),
        };
      case "put_artifact":
        writeFileSync(join(directory, "artifacts", params["name"] ?? ""), params["content"] ?? "");
        return { accepted: true };
      case "ping": {
        const result: Record<string, unknown> = {};
        for (const key in { pong: true }) result[key] = true;
        return result;
      }
      default:
        recorded.push({ task, method: call.method });
        return { accepted: true };
    }
  }

  function reply(text: string, claimed?: string): string {
    try {
      const call = JSON.parse(text) as Call | Call[];
      const calls = Array.isArray(call) ? call : [call];
      return calls
        .map((one) => JSON.stringify({ jsonrpc: "2.0", id: one.id ?? null, result: answer(one, claimed) }))
        .join("\n");
    } catch (error) {
      return JSON.stringify({ jsonrpc: "2.0", id: null, error: error instanceof Error ? error.stack : "" });
    }
  }

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    let kept = "";
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      kept += text;
      for (;;) {
        const taken = /^[{[]/.test(kept) ? takeLine(kept) : takeRequest(kept);
        if (taken === null) return;
        kept = taken.rest;
        const body = `${reply(taken.text, taken.claimed)}\n`;
        socket.write(
          taken.isHttp
            ? `HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
            : body,
        );
      }
    });
  });
  const socketPath = join(directory, "naive.sock");
  server.listen(socketPath);
  await once(server, "listening");
  return {
    socketPath,
    recorded,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

interface Taken {
  readonly text: string;
  readonly rest: string;
  readonly claimed?: string | undefined;
  readonly isHttp?: boolean;
}

function takeLine(kept: string): Taken | null {
  const end = kept.indexOf("\n");
  return end === -1 ? null : { text: kept.slice(0, end), rest: kept.slice(end + 1) };
}

function takeRequest(kept: string): Taken | null {
  const end = kept.indexOf("\r\n\r\n");
  if (end === -1) return null;
  const head = kept.slice(0, end);
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
  const body = kept.slice(end + 4);
  if (body.length < length) return null;
  const claimed = /^x-task: *(\S+)/im.exec(head)?.[1];
  return { text: body.slice(0, length), rest: body.slice(length), claimed, isHttp: true };
}

/** Copies into `target` what `source` has, level by level: the classic way to write into every object's prototype. */
function merge(target: Record<string, unknown>, source: Record<string, unknown>): Record<string, unknown> {
  for (const [key, value] of Object.entries(source)) {
    if (typeof value === "object" && value !== null) {
      target[key] = merge((target[key] ?? {}) as Record<string, unknown>, value as Record<string, unknown>);
    } else target[key] = value;
  }
  return target;
}
