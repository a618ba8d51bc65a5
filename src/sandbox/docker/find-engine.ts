import type Docker from "dockerode";
import { z } from "zod";
import { RunnerError } from "../../model/runner-error.ts";
import type { EngineCandidate, EngineSearch } from "../engine-setup.ts";
import { connectEngine } from "./connect-engine.ts";
import { type Candidate, engineCandidates } from "./engine-candidates.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A local engine answers in milliseconds; a remote one pays for a handshake or a new ssh process first. */
const LOCAL_PING_MS = 3_000;
const REMOTE_PING_MS = 15_000;

const versionSchema = z.object({ Version: z.string(), ApiVersion: z.string() });

/**
 * Finds the engine to use: the first candidate that answers a ping and tells its version, in the order --engine,
 * BULKHEAD_ENGINE, DOCKER_HOST, docker context, then the usual sockets. Where the person named one and it does not answer,
 * the search ends there: silently falling back to another machine would run the work in the wrong place.
 */
export async function findEngine(env: Env, options: { explicit?: string } = {}): Promise<EngineSearch> {
  const tried: EngineCandidate[] = [];
  for (const candidate of engineCandidates(env, options.explicit ?? null)) {
    if (tried.some((earlier) => earlier.endpoint === candidate.endpoint)) continue;
    const outcome = await askCandidate(candidate, env);
    tried.push({
      endpoint: candidate.endpoint ?? "",
      source: candidate.source,
      outcome: outcome.ok ? `Docker API ${outcome.apiVersion}, version ${outcome.version}` : outcome.problem,
    });
    if (outcome.ok && candidate.endpoint !== null) {
      const { version, apiVersion } = outcome;
      return {
        endpoint: candidate.endpoint,
        why: whyTaken(candidate, tried.length),
        certPath: candidate.certPath,
        version,
        apiVersion,
        tried,
      };
    }
    if (candidate.isBinding) return { endpoint: null, named: candidate.endpoint ?? candidate.source, tried };
  }
  return { endpoint: null, named: null, tried };
}

function whyTaken(candidate: Candidate, position: number): string {
  if (candidate.isBinding) return `named by ${candidate.source}`;
  return position === 1 ? `${candidate.source} answered` : `${candidate.source} was the first that answered`;
}

type PingOutcome =
  | { readonly ok: true; readonly version: string; readonly apiVersion: string }
  | { readonly ok: false; readonly problem: string };

async function askCandidate(candidate: Candidate, env: Env): Promise<PingOutcome> {
  if (candidate.endpoint === null) return { ok: false, problem: candidate.problem ?? "not readable" };
  return pingEngine(candidate.endpoint, env, candidate.certPath);
}

/** Asks `/_ping` and `/version` within a bound; never throws, whatever listens there. */
export async function pingEngine(
  endpoint: string,
  env: Env,
  certPath: string | null = null,
  limitMs: number = endpoint.startsWith("unix://") ? LOCAL_PING_MS : REMOTE_PING_MS,
): Promise<PingOutcome> {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  // Aborting alone is not enough: once headers came, the library leaves the promise of a dropped connection pending.
  const late = new Promise<PingOutcome>((resolve) => {
    timer = setTimeout(() => {
      stop.abort();
      resolve({ ok: false, problem: `no answer within ${limitMs / 1000} s` });
    }, limitMs);
  });
  try {
    return await Promise.race([ask(endpoint, env, certPath, stop.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function ask(
  endpoint: string,
  env: Env,
  certPath: string | null,
  abortSignal: AbortSignal,
): Promise<PingOutcome> {
  try {
    const engine = connectEngine(endpoint, env, certPath);
    await get(engine, "/_ping", abortSignal);
    const version = versionSchema.safeParse(await get(engine, "/version", abortSignal));
    if (!version.success) return { ok: false, problem: "answers, but not like a Docker-compatible engine" };
    return { ok: true, version: version.data.Version, apiVersion: version.data.ApiVersion };
  } catch (cause) {
    return { ok: false, problem: explainPing(cause, endpoint) };
  }
}

/** `ping()` and `version()` of the library take an abort signal too, but its types do not know. */
function get(engine: Docker, path: string, abortSignal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const options = { path, method: "GET", abortSignal, statusCodes: { 200: true, 500: "server error" } };
    engine.modem.dial(options, (cause: unknown, body: unknown) => {
      if (cause) reject(cause);
      else resolve(body);
    });
  });
}

function explainPing(cause: unknown, endpoint: string): string {
  if (cause instanceof RunnerError) return `${cause.message}; ${cause.hint ?? ""}`;
  const { code, statusCode, path } = cause as { code?: unknown; statusCode?: unknown; path?: unknown };
  if (typeof statusCode === "number")
    return `answers with HTTP ${statusCode}, not like a Docker-compatible engine`;
  switch (code) {
    case "ENOENT":
      if (endpoint.startsWith("ssh://")) return "the program ssh is not on the PATH";
      return endpoint.startsWith("unix://") ? "no such socket" : `cannot read ${String(path)}`;
    case "EACCES":
    case "EPERM":
      return "permission denied: add yourself to the group that owns the socket (`usermod -aG docker $USER`, then log in again)";
    case "ECONNREFUSED":
      return endpoint.startsWith("unix://")
        ? "nothing listens on this socket (left by an engine that ended)"
        : "the connection was refused";
    case "ENOTSOCK":
      return "not a socket";
    case "ECONNRESET":
    case "ERR_STREAM_PREMATURE_CLOSE":
      return "the connection was closed before an answer";
    default:
      return `no connection (${typeof code === "string" ? code : String(cause)})`;
  }
}
