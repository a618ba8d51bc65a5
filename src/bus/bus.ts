/**
 * The face of `bus/`: the JSON-RPC service an attempt sees. Who calls is decided by the door the frame came through and is given
 * here as `caller`; nothing a caller says can change it (row D3).
 */
import type { AttemptKey, TaskId } from "../model/ids.ts";

/** What the bus needs from the supervisor; every promise may reject only for bugs (answered as -32603, logged). */
export interface BusPort {
  register(caller: AttemptKey, info: { name: string; version: string | null }): Promise<void>;
  reportStatus(
    caller: AttemptKey,
    status: { state: string; message: string | null; percent: number | null },
  ): Promise<void>;
  reportError(caller: AttemptKey, error: { message: string; fatal: boolean }): Promise<void>;
  log(
    caller: AttemptKey,
    entry: { level: "debug" | "info" | "warn" | "error"; message: string },
  ): Promise<void>;
  /** The last *submitted* version of the path as `taskId` left it; the caller's own task means its snapshot. */
  getFile(caller: AttemptKey, taskId: TaskId, path: string): Promise<BusFile | BusDenial>;
  putArtifact(
    caller: AttemptKey,
    artifact: { name: string; content: Buffer },
  ): Promise<{ sha256: string; bytes: number } | BusDenial>;
  context(caller: AttemptKey): Promise<unknown>;
  /** Called once per answered call, for the log (row A10). MUST be cheap: it is on the path of every call. */
  record(
    caller: AttemptKey,
    call: { method: string; requestId: string | number | null; tookMs: number; errorCode: number | null },
  ): void;
}

export interface BusFile {
  readonly ok: true;
  readonly content: Buffer;
  readonly blob: string;
  readonly commit: string;
  readonly mode: string;
}

/** An expected refusal, sent as a JSON-RPC error with our own code. */
export interface BusDenial {
  readonly ok: false;
  readonly kind:
    | "unknown-task"
    | "not-submitted"
    | "not-a-dependency"
    | "no-such-file"
    | "too-large"
    | "bad-name"
    | "quota";
  readonly message: string;
}

/** A bus for one caller: give its `frame` and `oversize` to that caller's door. */
export interface CallerBus {
  frame(text: string): Promise<string | undefined>;
  oversize(limitBytes: number): string;
}
