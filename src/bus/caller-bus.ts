/**
 * The bus as one attempt sees it: the method table of `protocol/bus-methods.ts` bound to one caller and to the supervisor's port.
 *
 * Trust: the caller is fixed here, when the door is made; no field of any call names it. Every amount a caller can make the host
 * spend is bounded: calls and bytes per second, reply size, artifacts.
 * LIMITATION: rates and artifact counts live in memory, so they start anew when the supervisor does.
 */
import { isUtf8 } from "node:buffer";
import { performance } from "node:perf_hooks";
import { type AttemptKey, formatAttempt } from "../model/ids.ts";
import { BUS_METHODS, BUS_PROTOCOL_VERSION } from "../protocol/bus-methods.ts";
import { type Description, describeMethods } from "../protocol/describe-methods.ts";
import { ERROR_CODES } from "../protocol/error-codes.ts";
import { rpcError } from "../protocol/json-rpc.ts";
import type { Logger } from "../util/logger.ts";
import { err, ok } from "../util/result.ts";
import { createSemaphore } from "../util/semaphore.ts";
import { createArtifactAllowance } from "./artifact-allowance.ts";
import type { BusDenial, BusFile, BusPort, CallerBus } from "./bus.ts";
import { createDispatcher, defineMethod, type MethodOutcome } from "./dispatch.ts";
import { createRateBucket } from "./rate-bucket.ts";

export interface BusLimits {
  readonly callsPerSecond: number;
  readonly callBurst: number;
  /** What a caller sends, as most of it ends up in the log; in UTF-16 units, about bytes. */
  readonly sentCharsPerSecond: number;
  readonly sentCharsBurst: number;
  /** Largest file that `get_file` sends. */
  readonly maxFileBytes: number;
  readonly maxReplyChars: number;
  readonly maxArtifacts: number;
  readonly maxArtifactBytesInAll: number;
}

export const DEFAULT_BUS_LIMITS: BusLimits = {
  callsPerSecond: 2000,
  callBurst: 5000,
  sentCharsPerSecond: 2 * 1024 * 1024,
  sentCharsBurst: 64 * 1024 * 1024,
  maxFileBytes: 1024 * 1024,
  maxReplyChars: 4 * 1024 * 1024,
  maxArtifacts: 256,
  maxArtifactBytesInAll: 64 * 1024 * 1024,
};

/** Calls of one attempt that read or write files, at once; the rest of them waits its turn. */
const DISK_CALLS_AT_ONCE = 4;
/** Refused calls are logged at most this often; a flood must not fill the log. */
const REFUSED_LOGGED_EVERY_MS = 1000;
const BUGS_LOGGED_PER_SECOND = 1;
const BUGS_LOGGED_BURST = 20;

/** Makes the bus of one attempt; give its `frame` and `oversize` to that attempt's door. */
export function createCallerBus(
  caller: AttemptKey,
  port: BusPort,
  logger: Logger,
  options: Partial<BusLimits> = {},
): CallerBus {
  const limits = { ...DEFAULT_BUS_LIMITS, ...options };
  const calls = createRateBucket(limits.callsPerSecond, limits.callBurst);
  const chars = createRateBucket(limits.sentCharsPerSecond, limits.sentCharsBurst);
  // A full disk fails every call; the log of the supervisor must not fill up with that too.
  const bugs = createRateBucket(BUGS_LOGGED_PER_SECOND, BUGS_LOGGED_BURST);
  let bugsNotLogged = 0;
  let refusedLoggedMs = Number.NEGATIVE_INFINITY;

  return createDispatcher(createMethods(caller, port, limits), {
    maxReplyChars: limits.maxReplyChars,
    admit(frameChars) {
      const nowMs = performance.now();
      return calls.take(1, nowMs) || chars.take(frameChars, nowMs);
    },
    answered(call) {
      if (call.errorCode === ERROR_CODES["rate-limited"].code) {
        const nowMs = performance.now();
        if (nowMs - refusedLoggedMs < REFUSED_LOGGED_EVERY_MS) return;
        refusedLoggedMs = nowMs;
      }
      port.record(caller, call);
    },
    unforeseen({ correlationId, method, cause }) {
      if (bugs.take(1, performance.now()) > 0) {
        bugsNotLogged += 1;
        return;
      }
      logger.error(
        { attempt: formatAttempt(caller), correlationId, method, err: cause, notLogged: bugsNotLogged },
        "a bus call failed unexpectedly",
      );
      bugsNotLogged = 0;
    },
  });
}

function createMethods(caller: AttemptKey, port: BusPort, limits: BusLimits) {
  const allowance = createArtifactAllowance(limits.maxArtifacts, limits.maxArtifactBytesInAll);
  const disk = createSemaphore(DISK_CALLS_AT_ONCE);
  const { register, status, progress, log, error, get_file, put_artifact, context, describe, ping } =
    BUS_METHODS;
  return {
    register: defineMethod(register.params, async ({ name, version }) => {
      await port.register(caller, { name, version: version ?? null });
      return accepted;
    }),
    status: defineMethod(status.params, async ({ state, message, percent }) => {
      await port.reportStatus(caller, { state, message: message ?? null, percent: percent ?? null });
      return accepted;
    }),
    progress: defineMethod(progress.params, async ({ percent, message }) => {
      await port.reportStatus(caller, { state: "working", message: message ?? null, percent });
      return accepted;
    }),
    log: defineMethod(log.params, async (entry) => {
      await port.log(caller, entry);
      return accepted;
    }),
    error: defineMethod(error.params, async (report) => {
      await port.reportError(caller, report);
      return accepted;
    }),
    get_file: defineMethod(get_file.params, async ({ task_id, path, encoding }) => {
      const file = await disk.use(() => port.getFile(caller, task_id, path));
      return file.ok ? encodeFile(file, encoding, limits.maxFileBytes) : deny(file);
    }),
    put_artifact: defineMethod(put_artifact.params, async ({ name, content, encoding }) => {
      const bytes = decodeContent(content, encoding);
      if (bytes === undefined) return notBase64;
      const held = allowance.reserve(name, bytes.length);
      if (!held.ok) return err(rpcError("quota", held.error));
      const artifact = { name, content: bytes };
      const stored = await disk
        .use(() => port.putArtifact(caller, artifact))
        .catch((cause: unknown) => {
          held.value.giveBack();
          throw cause;
        });
      if ("ok" in stored) {
        held.value.giveBack();
        return deny(stored);
      }
      return ok({ sha256: stored.sha256, bytes: stored.bytes });
    }),
    context: defineMethod(context.params, async () => ok(await port.context(caller))),
    describe: defineMethod(describe.params, () => ok(description())),
    ping: defineMethod(ping.params, () => pong),
  };
}

const accepted: MethodOutcome = ok({ accepted: true });
const pong: MethodOutcome = ok({ pong: true });
const notBase64: MethodOutcome = err(
  rpcError("invalid-params", 'content: not base64; the field "encoding" says it is', {
    issues: [{ field: "content", got: "other characters", allowed: "base64 with padding, no line breaks" }],
  }),
);

function deny(denial: BusDenial): MethodOutcome {
  return err(rpcError(denial.kind, denial.message));
}

function encodeFile(file: BusFile, asked: "utf8" | "base64" | undefined, maxBytes: number): MethodOutcome {
  if (file.content.length > maxBytes) {
    const message = `the file has ${file.content.length} bytes, the bus sends at most ${maxBytes}`;
    return err(rpcError("too-large", message, { bytes: file.content.length, limitBytes: maxBytes }));
  }
  const isText = asked !== "base64" && isUtf8(file.content);
  if (asked === "utf8" && !isText) {
    return err(rpcError("not-text", 'the file is not valid UTF-8; ask with "encoding": "base64"'));
  }
  const encoding = isText ? "utf8" : "base64";
  const { blob, commit, mode } = file;
  return ok({ content: file.content.toString(encoding), encoding, blob, commit, mode });
}

/** The bytes, or undefined where `content` is not base64 (Node would skip what it does not know). */
function decodeContent(content: string, encoding: "utf8" | "base64"): Buffer | undefined {
  if (encoding === "utf8") return Buffer.from(content, "utf8");
  const bytes = Buffer.from(content, "base64");
  return bytes.toString("base64") === content ? bytes : undefined;
}

let described: Description | undefined;

/** Built on first use and kept: the table never changes while the program runs. */
function description(): Description {
  described ??= describeMethods(BUS_METHODS, BUS_PROTOCOL_VERSION);
  return described;
}
