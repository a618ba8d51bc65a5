import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";

type Env = Readonly<Record<string, string | undefined>>;

/** Somewhere an engine may be. `endpoint` is null where the place that names it could not be read. */
export interface Candidate {
  readonly endpoint: string | null;
  readonly source: string;
  /** TLS folder that belongs to this candidate; null leaves DOCKER_CERT_PATH to decide. */
  readonly certPath: string | null;
  /** What is wrong where `endpoint` is null. */
  readonly problem?: string;
  /** The person named it, so no later candidate may stand in for it: work meant for one machine must not run on another. */
  readonly isBinding: boolean;
}

const dockerConfigSchema = z.object({ currentContext: z.string().optional() });
const contextMetaSchema = z.object({
  Endpoints: z.object({ docker: z.object({ Host: z.string().min(1) }) }),
});

/** Everywhere to look, most explicit first. Reads files of the docker client, asks no engine. */
export function engineCandidates(env: Env, explicit: string | null): readonly Candidate[] {
  const home = env["HOME"] || homedir();
  const named: Candidate[] = [];
  const bind = (endpoint: string | undefined, source: string) => {
    if (endpoint) named.push({ endpoint, source, certPath: null, isBinding: true });
  };
  if (explicit !== null) bind(explicit, "--engine");
  bind(env["BULKHEAD_ENGINE"], "BULKHEAD_ENGINE");
  bind(env["DOCKER_HOST"], "DOCKER_HOST");
  const context = contextCandidate(env, home);
  if (context !== null) named.push(context);

  const runtimeDir = env["XDG_RUNTIME_DIR"] || null;
  const places: ReadonlyArray<readonly [string | null, string]> = [
    ["/var/run/docker.sock", "the default socket"],
    [runtimeDir && join(runtimeDir, "docker.sock"), "rootless Docker"],
    [join(home, ".docker/run/docker.sock"), "Docker in the home directory"],
    [join(home, ".docker/desktop/docker.sock"), "Docker Desktop"],
    [join(home, ".colima/default/docker.sock"), "Colima"],
    [runtimeDir && join(runtimeDir, "podman/podman.sock"), "rootless Podman"],
    ["/run/podman/podman.sock", "Podman"],
  ];
  const usual = places.flatMap(([path, source]) =>
    path === null ? [] : [{ endpoint: `unix://${path}`, source, certPath: null, isBinding: false }],
  );
  return [...named, ...usual];
}

/** The docker client's current context; null for none and for "default", which means the usual places. */
function contextCandidate(env: Env, home: string): Candidate | null {
  const configDir = env["DOCKER_CONFIG"] || join(home, ".docker");
  const name = env["DOCKER_CONTEXT"] || currentContext(join(configDir, "config.json"));
  if (name === null || name === "default") return null;
  // DOCKER_CONTEXT was said for this very command; a context chosen some day with `docker context use` is a preference.
  const isBinding = Boolean(env["DOCKER_CONTEXT"]);
  const source = `docker context "${name}"`;
  const id = createHash("sha256").update(name).digest("hex");
  const metaPath = join(configDir, "contexts/meta", id, "meta.json");
  const meta = contextMetaSchema.safeParse(readJson(metaPath));
  if (!meta.success) {
    return { endpoint: null, source, certPath: null, isBinding, problem: `no endpoint in ${metaPath}` };
  }
  const tls = join(configDir, "contexts/tls", id, "docker");
  return {
    endpoint: meta.data.Endpoints.docker.Host,
    source,
    certPath: existsSync(join(tls, "cert.pem")) ? tls : null,
    isBinding,
  };
}

function currentContext(configPath: string): string | null {
  const config = dockerConfigSchema.safeParse(readJson(configPath));
  return config.success ? (config.data.currentContext ?? null) : null;
}

/** undefined for a missing or broken file: the schemas above turn it into "no context". */
function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}
