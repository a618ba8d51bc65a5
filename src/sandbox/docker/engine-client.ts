/**
 * The one way to the engine: dockerode, bounded in time, with errors told apart by code.
 *
 * Theory of operation. A call that reads a whole body never settles when the daemon drops the connection after the
 * headers, so each call here races with a time limit. Connections are not kept alive: a pooled socket that the daemon
 * closed meanwhile would fail a request that was never seen, and a new Unix connection costs a tenth of a millisecond.
 * No API version is pinned: engines refuse both too new and too old ones.
 */
import { readFileSync } from "node:fs";
import Dockerode from "dockerode";
import { RunnerError } from "../../model/runner-error.ts";

const CALL_LIMIT_MS = 60_000;

export interface EngineClient {
  readonly docker: Dockerode;
  readonly endpoint: string;
  readonly isLocalSocket: boolean;
  /** Runs one request. `what` names it in errors. Rejects with a `RunnerError("timeout")` past the limit. */
  call<T>(what: string, work: (signal: AbortSignal) => Promise<T>, limitMs?: number): Promise<T>;
}

/** Opens nothing yet: dockerode connects per request. `tlsDir` holds ca.pem, cert.pem and key.pem for tcp endpoints. */
export function createEngineClient(endpoint: string, tlsDir?: string): EngineClient {
  const docker = new Dockerode(connectionOptions(endpoint, tlsDir));
  return {
    docker,
    endpoint,
    isLocalSocket: endpoint.startsWith("unix://"),
    async call(what, work, limitMs = CALL_LIMIT_MS) {
      const abort = new AbortController();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          reject(
            new RunnerError(
              "timeout",
              `the engine at ${endpoint} did not answer "${what}" within ${limitMs} ms`,
              {
                data: { what, limitMs },
                hint: "check that the engine is alive: docker version",
              },
            ),
          );
          abort.abort();
        }, limitMs);
      });
      try {
        return await Promise.race([work(abort.signal), late]);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/**
 * Every field is set, also to undefined: dockerode fills absent ones from DOCKER_HOST and DOCKER_CERT_PATH of the
 * process, which may point at another engine than the asked one.
 */
function connectionOptions(endpoint: string, tlsDir: string | undefined): Dockerode.DockerOptions {
  const none = {
    socketPath: undefined,
    host: undefined,
    port: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    // Not an agent without keep-alive: dockerode would print it, with all its sockets, for each request (80 ms CPU).
    headers: { Connection: "close" },
  };
  if (endpoint.startsWith("unix://")) {
    const socketPath = endpoint.slice("unix://".length);
    if (!socketPath.startsWith("/")) throw badEndpoint(endpoint);
    return { ...none, socketPath, protocol: "http" };
  }
  const url = URL.parse(endpoint);
  if (url === null || !["tcp:", "http:", "https:"].includes(url.protocol) || url.hostname === "") {
    throw badEndpoint(endpoint);
  }
  const isTls = url.protocol === "https:" || tlsDir !== undefined;
  const pem = (name: string) => (tlsDir === undefined ? undefined : readFileSync(`${tlsDir}/${name}.pem`));
  return {
    ...none,
    host: url.hostname,
    port: url.port === "" ? (isTls ? "2376" : "2375") : url.port,
    protocol: isTls ? "https" : "http",
    ca: pem("ca"),
    cert: pem("cert"),
    key: pem("key"),
  };
}

function badEndpoint(endpoint: string): RunnerError {
  return new RunnerError("config-invalid", `engine endpoint "${endpoint}" is of no known form`, {
    data: { endpoint },
    hint: "use unix:///path/to/socket or tcp://host:port",
  });
}

/** HTTP status of an engine's answer, or null where there was no answer. */
export function statusOf(error: unknown): number | null {
  if (typeof error !== "object" || error === null || !("statusCode" in error)) return null;
  return typeof error.statusCode === "number" ? error.statusCode : null;
}

/** True where the engine could not be talked to (refused, reset, timed out), as opposed to saying no. */
export function isUnreachable(error: unknown): boolean {
  if (statusOf(error) !== null) return false;
  if (error instanceof RunnerError) return error.code === "timeout" || error.code === "engine-unreachable";
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

/** Text for people, never for decisions. */
export function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).trim().slice(0, 2_000);
}

/** True for "no such object", and for "removal already in progress" where `orBusy`. */
export function isGone(error: unknown): boolean {
  return statusOf(error) === 404;
}
