import { connect, type Socket } from "node:net";
import { RUNNER_ERROR_CODES, RunnerError } from "../model/runner-error.ts";
import { createDeferred, type Deferred } from "../util/deferred.ts";

/** A JSON-RPC connection to a supervisor: calls, and the notifications it pushes. */
export interface RpcClient {
  /** Rejects with RunnerError: the server's own code in `data.rpcCode`, or `supervisor-unreachable`. */
  call(method: string, params: object): Promise<unknown>;
  onNotification(listener: (method: string, params: unknown) => void): void;
  /** Settles when the connection is gone. */
  readonly closed: Promise<void>;
  close(): void;
}

/** Connects, or returns null where nobody listens. */
export function connectRpc(socketPath: string): Promise<RpcClient | null> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    socket.once("connect", () => resolve(createClient(socket)));
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(null);
      else {
        const hint = "check that the state directory is yours, or choose another with BULKHEAD_STATE_DIR";
        reject(
          new RunnerError("supervisor-unreachable", `${socketPath}: ${error.message}`, {
            cause: error,
            hint,
          }),
        );
      }
    });
  });
}

function createClient(socket: Socket): RpcClient {
  const waiting = new Map<number, Deferred<unknown>>();
  const closed = createDeferred<void>();
  let notify: (method: string, params: unknown) => void = () => undefined;
  let nextId = 1;
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") receive(JSON.parse(line));
  });
  socket.on("error", () => undefined /* "close" follows and settles everything */);
  socket.on("close", () => {
    for (const call of waiting.values()) {
      call.reject(new RunnerError("supervisor-unreachable", "the supervisor closed the connection"));
    }
    waiting.clear();
    closed.resolve();
  });

  function receive(frame: {
    id?: number;
    method?: string;
    params?: unknown;
    result?: unknown;
    error?: RpcFault;
  }): void {
    if (frame.method !== undefined) {
      notify(frame.method, frame.params);
      return;
    }
    const call = frame.id === undefined ? undefined : waiting.get(frame.id);
    if (!call || frame.id === undefined) return;
    waiting.delete(frame.id);
    if (frame.error) call.reject(toRunnerError(frame.error));
    else call.resolve(frame.result);
  }

  return {
    call(method, params) {
      const id = nextId++;
      const deferred = createDeferred<unknown>();
      waiting.set(id, deferred);
      socket.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
      return deferred.promise;
    },
    onNotification(listener) {
      notify = listener;
    },
    closed: closed.promise,
    close: () => socket.destroy(),
  };
}

interface RpcFault {
  readonly code: number;
  readonly message: string;
  readonly data?: { readonly runnerCode?: unknown; readonly hint?: unknown; readonly details?: unknown };
}

function toRunnerError(fault: RpcFault): RunnerError {
  const code = RUNNER_ERROR_CODES.find((known) => known === fault.data?.runnerCode) ?? "internal";
  const hint = typeof fault.data?.hint === "string" ? { hint: fault.data.hint } : {};
  return new RunnerError(code, fault.message, {
    data: { rpcCode: fault.code, details: fault.data?.details },
    ...hint,
  });
}
