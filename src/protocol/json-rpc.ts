/**
 * JSON-RPC 2.0 frames: text in, a typed call out, and replies back to text. Pure; the transport (one line or one HTTP body per
 * frame) is the door's business. Batches are refused: a door carries many frames at once anyway, and one batch would be one
 * unbounded unit of work.
 */
import { err, ok, type Result } from "../util/result.ts";
import { ERROR_CODES, type ErrorName } from "./error-codes.ts";

export type RequestId = string | number | null;

/** A request or, where `id` is undefined, a notification: it gets no answer, not even an error. */
export interface RpcCall {
  readonly id: RequestId | undefined;
  readonly method: string;
  /** As sent; undefined where the frame has none. */
  readonly params: unknown;
}

/** The `error` member of a reply. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** A frame that is no call; `id` is what could be read of it. */
export interface FrameFault {
  readonly id: RequestId;
  readonly error: RpcError;
}

/** Ids are echoed and logged, so they are held short. */
export const MAX_ID_LENGTH = 256;
const MAX_METHOD_LENGTH = 128;

/** Reads one frame. */
export function parseFrame(text: string): Result<RpcCall, FrameFault> {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch {
    // The parser's own message quotes the input; ours does not repeat hostile bytes.
    return fault(null, "parse-error", "the frame is not valid JSON in UTF-8");
  }
  if (Array.isArray(frame)) {
    return fault(
      null,
      "invalid-request",
      "batches are not taken: send each call as its own line (or its own POST /rpc)",
    );
  }
  if (typeof frame !== "object" || frame === null) {
    return fault(null, "invalid-request", `a call is a JSON object, this is ${describeType(frame)}`);
  }
  const { jsonrpc, id, method, params } = frame as Record<string, unknown>;
  if (!isRequestId(id) && id !== undefined) {
    return fault(
      null,
      "invalid-request",
      `"id" must be a string of at most ${MAX_ID_LENGTH} characters, a finite number or null`,
    );
  }
  const echo = id ?? null;
  if (jsonrpc !== "2.0") return fault(echo, "invalid-request", '"jsonrpc" must be "2.0"');
  if (typeof method !== "string" || method === "" || method.length > MAX_METHOD_LENGTH) {
    return fault(
      echo,
      "invalid-request",
      `"method" must be a string of 1 to ${MAX_METHOD_LENGTH} characters`,
    );
  }
  if (params !== undefined && (typeof params !== "object" || params === null)) {
    return fault(echo, "invalid-request", `"params" must be an object, this is ${describeType(params)}`);
  }
  return ok({ id, method, params });
}

/** Text of a reply that carries a result. Throws where the result cannot be written as JSON. */
export function formatResult(id: RequestId, result: unknown): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${JSON.stringify(result ?? null)}}`;
}

/** Text of a reply that carries an error. */
export function formatError(id: RequestId, error: RpcError): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error });
}

/** An error by its name in the table; `data.reason` repeats the name for callers that prefer words. */
export function rpcError(name: ErrorName, message: string, data: Record<string, unknown> = {}): RpcError {
  return { code: ERROR_CODES[name].code, message, data: { reason: name, ...data } };
}

/** True for what JSON-RPC allows as an id, within our bounds. */
export function isRequestId(value: unknown): value is RequestId {
  return (
    value === null ||
    (typeof value === "number" && Number.isFinite(value)) ||
    (typeof value === "string" && value.length <= MAX_ID_LENGTH)
  );
}

function fault(id: RequestId, name: ErrorName, message: string): Result<RpcCall, FrameFault> {
  return err({ id, error: rpcError(name, message) });
}

function describeType(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : `a ${typeof value}`;
}
