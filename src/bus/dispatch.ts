/**
 * JSON-RPC dispatch over a table of methods; used behind every attempt's door and behind the supervisor's own socket.
 *
 * Theory of operation. One frame in, at most one reply out, never a rejection: the frame is parsed, admitted (rate), its params are
 * validated by the method's schema, the handler is run, the reply is bounded, and `answered` is told once with the time it
 * took. Notifications run the same way and get no reply.
 *
 * Trust: the text is hostile. What goes back holds no stack, no host path and no message of an unforeseen error; those go to
 * `unforeseen` under a correlation id that the caller is given.
 */
import { randomBytes } from "node:crypto";
import { performance } from "node:perf_hooks";
import { z } from "zod";
import { ERROR_CODES } from "../protocol/error-codes.ts";
import {
  formatError,
  formatResult,
  parseFrame,
  type RequestId,
  type RpcError,
  rpcError,
} from "../protocol/json-rpc.ts";
import { nearestName } from "../protocol/nearest-name.ts";
import { err, ok, type Result } from "../util/result.ts";
import { invalidParams } from "./param-issues.ts";

/** What a handler answers: a result to send, or an expected refusal. */
export type MethodOutcome = Result<unknown, RpcError>;

/** What a handler may know of the call beside its params. `connection` is whatever the door gave to `frame`. */
export interface CallInfo<C> {
  readonly method: string;
  readonly id: RequestId | undefined;
  readonly connection: C | undefined;
}

type BoundCall<C> = (call: CallInfo<C>) => MethodOutcome | Promise<MethodOutcome>;

/** One method: validates params and, where they fit, gives the call ready to run. Made by `defineMethod`. */
export interface MethodHandler<C = unknown> {
  bind(params: unknown): Result<BoundCall<C>, RpcError>;
}

/** A finished call, for the log. `method` is the name in the table, or in parentheses what the frame was instead. */
export interface AnsweredCall {
  readonly method: string;
  readonly requestId: RequestId;
  readonly tookMs: number;
  readonly errorCode: number | null;
}

export interface DispatchHooks {
  /** Told once per frame, after the reply is made. */
  answered(call: AnsweredCall): void;
  /** Told of a bug: something threw that should not have. For the log of the supervisor only. */
  unforeseen?(failure: { correlationId: string; method: string; cause: unknown }): void;
  /** Asked before a frame is worked on: 0 lets it in, else the milliseconds after which to try again. */
  admit?(frameChars: number): number;
  /** Longest reply, in UTF-16 units; a longer one becomes `too-large`. */
  readonly maxReplyChars?: number;
}

export interface Dispatcher<C> {
  frame(text: string, connection?: C): Promise<string | undefined>;
  oversize(limitBytes: number): string;
}

const DEFAULT_MAX_REPLY_CHARS = 4 * 1024 * 1024;
/** Longest time a refused call is held back; see `frame`. */
const MAX_PENALTY_MS = 250;

/** Joins a schema and a function to a method. `params` left out by the caller count as `{}`. */
export function defineMethod<S extends z.ZodType, C = unknown>(
  schema: S,
  handle: (params: z.output<S>, call: CallInfo<C>) => MethodOutcome | Promise<MethodOutcome>,
): MethodHandler<C> {
  const fields = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
  return {
    bind(params) {
      const given = params ?? {};
      const parsed = schema.safeParse(given);
      if (!parsed.success) return err(invalidParams(parsed.error.issues, given, fields));
      return ok((call) => handle(parsed.data, call));
    },
  };
}

/** Makes a dispatcher over a method table. */
export function createDispatcher<C = unknown>(
  methods: Readonly<Record<string, MethodHandler<C>>>,
  hooks: DispatchHooks,
): Dispatcher<C> {
  // A Map, so that "constructor" and "__proto__" are unknown methods like any other.
  const table = new Map(Object.entries(methods));
  const maxReplyChars = hooks.maxReplyChars ?? DEFAULT_MAX_REPLY_CHARS;

  async function frame(text: string, connection?: C): Promise<string | undefined> {
    const startedMs = performance.now();
    let method = "(not a call)";
    let id: RequestId | undefined = null;
    let reply: { text: string | undefined; code: number | null };
    try {
      const retryAfterMs = hooks.admit?.(text.length) ?? 0;
      const parsed = parseFrame(text);
      if (parsed.ok) {
        id = parsed.value.id;
        method = table.has(parsed.value.method) ? parsed.value.method : "(unknown)";
      } else id = parsed.error.id;
      if (retryAfterMs > 0) {
        // Held back, so that a flooding connection fills its in-flight bound and is no longer read.
        await pause(penaltyMs(retryAfterMs));
        const message = `calls come faster than this door's rate; try again in ${retryAfterMs} ms`;
        reply = refuse(id, rpcError("rate-limited", message, { retryAfterMs }));
      } else if (parsed.ok) {
        const { method: name, params } = parsed.value;
        const outcome = await run(name, params, { method: name, id, connection });
        reply = outcome.ok ? answer(id, outcome.value) : refuse(id, outcome.error);
      } else reply = refuse(id, parsed.error.error);
    } catch (cause) {
      reply = refuse(id, unforeseen(method, cause));
    }
    const tookMs = Math.round((performance.now() - startedMs) * 1000) / 1000;
    try {
      hooks.answered({ method, requestId: id ?? null, tookMs, errorCode: reply.code });
    } catch (cause) {
      unforeseen(method, cause);
    }
    return reply.text;
  }

  function run(name: string, params: unknown, call: CallInfo<C>): MethodOutcome | Promise<MethodOutcome> {
    const handler = table.get(name);
    if (!handler) return err(unknownMethod(name, [...table.keys()]));
    const bound = handler.bind(params);
    return bound.ok ? bound.value(call) : bound;
  }

  function answer(
    id: RequestId | undefined,
    result: unknown,
  ): { text: string | undefined; code: number | null } {
    if (id === undefined) return { text: undefined, code: null };
    const text = formatResult(id, result);
    if (text.length <= maxReplyChars) return { text, code: null };
    const message = `the answer has ${text.length} characters as JSON, the bus sends at most ${maxReplyChars}; ask for less, or for base64`;
    return refuse(id, rpcError("too-large", message, { limit: maxReplyChars }));
  }

  function unforeseen(method: string, cause: unknown): RpcError {
    const correlationId = randomBytes(4).toString("hex");
    try {
      hooks.unforeseen?.({ correlationId, method, cause });
    } catch {
      // A logger that fails must not cost the caller its answer.
    }
    const message = `something failed on the host; its log has the details under ${correlationId}`;
    return rpcError("internal-error", message, { correlationId });
  }

  return { frame, oversize: oversizeReply };
}

function refuse(id: RequestId | undefined, error: RpcError): { text: string | undefined; code: number } {
  return { text: id === undefined ? undefined : formatError(id, error), code: error.code };
}

function oversizeReply(limitBytes: number): string {
  const message = `the frame is longer than this door takes (${limitBytes} bytes); the connection is closed`;
  return formatError(null, rpcError("frame-too-large", message, { limitBytes }));
}

function unknownMethod(name: string, known: readonly string[]): RpcError {
  const nearest = nearestName(name, known);
  const hint =
    nearest === undefined
      ? `the methods are ${known.join(", ")}`
      : `did you mean ${JSON.stringify(nearest)}?`;
  const shown = JSON.stringify(name.slice(0, 64));
  return {
    code: ERROR_CODES["method-not-found"].code,
    message: `there is no method ${shown}; ${hint}`,
    data: { reason: "method-not-found", ...(nearest === undefined ? {} : { nearest }) },
  };
}

/** Spread out, or a thousand refused calls would come back in one turn of the event loop. */
function penaltyMs(retryAfterMs: number): number {
  return Math.ceil(Math.min(retryAfterMs + MAX_PENALTY_MS / 2, MAX_PENALTY_MS) * (0.5 + Math.random() / 2));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
