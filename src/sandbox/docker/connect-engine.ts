import { readFileSync } from "node:fs";
import type { Agent } from "node:http";
import { join } from "node:path";
import Docker from "dockerode";
import { RunnerError } from "../../model/runner-error.ts";
import { createSshAgent } from "./ssh-agent.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** `agent` is an option of the library that its types leave out. */
type ConnectOptions = Docker.DockerOptions & { readonly agent?: Agent };

/** A dockerode client for one endpoint; `certPath` overrides DOCKER_CERT_PATH (a docker context brings its own). */
export function connectEngine(endpoint: string, env: Env, certPath?: string | null): Docker {
  return new Docker(dockerodeOptions(endpoint, env, certPath));
}

/**
 * dockerode fills every option that is left out from the process's own DOCKER_HOST, so `host` is always given: with a
 * `host` of undefined the socket path counts. No API version is pinned (engines refuse versions they do not know).
 */
export function dockerodeOptions(endpoint: string, env: Env, certPath?: string | null): ConnectOptions {
  if (endpoint.startsWith("unix://")) return local(endpoint.slice("unix://".length));
  if (endpoint.startsWith("/")) return local(endpoint);
  const url = parseEndpoint(endpoint);
  if (url.protocol === "ssh:") return overSsh(url, env);
  if (url.protocol === "tcp:" || url.protocol === "http:" || url.protocol === "https:") {
    return overTcp(url, env, certPath);
  }
  throw badEndpoint(endpoint);
}

function local(socketPath: string): ConnectOptions {
  return { socketPath, host: undefined, protocol: "http" };
}

function parseEndpoint(endpoint: string): URL {
  const url = URL.parse(endpoint.includes("://") ? endpoint : `tcp://${endpoint}`);
  if (url === null || url.hostname === "") throw badEndpoint(endpoint);
  return url;
}

function badEndpoint(endpoint: string): RunnerError {
  return new RunnerError("usage", `the engine endpoint "${endpoint}" is not one bulkhead can read`, {
    data: { endpoint },
    hint: "use unix:///path/to.sock, tcp://host:port or ssh://user@host",
  });
}

/** TLS where a certificate folder is named, DOCKER_TLS_VERIFY is set or the port is the one reserved for it. */
function overTcp(url: URL, env: Env, certPath: string | null | undefined): ConnectOptions {
  const folder = certPath ?? (env["DOCKER_CERT_PATH"] || null);
  const isVerified = (env["DOCKER_TLS_VERIFY"] ?? "") !== "";
  const isTls = url.protocol === "https:" || folder !== null || isVerified || url.port === "2376";
  const base = { host: bareHost(url), port: url.port || (isTls ? "2376" : "2375") };
  if (!isTls) return { ...base, protocol: "http" };
  if (folder === null) return { ...base, protocol: "https" };
  return {
    ...base,
    protocol: "https",
    ca: readFileSync(join(folder, "ca.pem")),
    cert: readFileSync(join(folder, "cert.pem")),
    key: readFileSync(join(folder, "key.pem")),
  };
}

function overSsh(url: URL, env: Env): ConnectOptions {
  const target = {
    host: bareHost(url),
    user: url.username === "" ? null : decodeURIComponent(url.username),
    port: url.port === "" ? null : url.port,
  };
  // The name is only for the Host header; the connection is the agent's.
  return { protocol: "http", host: "engine", port: 80, agent: createSshAgent(target, env) };
}

function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}
