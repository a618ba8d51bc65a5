import { randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { hostname, release } from "node:os";
import { join } from "node:path";
import type { Logger } from "../../util/logger.ts";
import type { EngineInfo } from "../sandbox.ts";
import { type EngineClient, isGone, messageOf, statusOf } from "./engine-client.ts";
import { asRunnerError, removeContainer } from "./remove-container.ts";

/** The fields of `info` and `version` that are read; engines send many more, and Podman not all of them. */
export interface EngineAnswers {
  readonly info: {
    readonly Name?: string;
    readonly Driver?: string;
    readonly CgroupDriver?: string;
    readonly CgroupVersion?: string;
    readonly SecurityOptions?: readonly string[] | null;
    readonly DockerRootDir?: string;
    readonly KernelVersion?: string;
    readonly NCPU?: number;
    readonly MemTotal?: number;
    readonly Runtimes?: Readonly<Record<string, unknown>>;
  };
  readonly version: {
    readonly Version?: string;
    readonly ApiVersion?: string;
    readonly Components?: ReadonlyArray<{ readonly Name?: string }>;
  };
}

export interface DescribedEngine extends Omit<EngineInfo, "sharesFilesystem"> {
  readonly cgroupDriver: string;
}

export function describeAnswers(endpoint: string, { info, version }: EngineAnswers): DescribedEngine {
  const security = info.SecurityOptions ?? [];
  const isPodman = (version.Components ?? []).some((part) => part.Name?.startsWith("Podman"));
  return {
    endpoint,
    product: isPodman ? "podman" : "docker",
    version: version.Version ?? "unknown",
    apiVersion: version.ApiVersion ?? "unknown",
    storageDriver: info.Driver ?? "unknown",
    cgroupDriver: info.CgroupDriver ?? "unknown",
    cgroupVersion: info.CgroupVersion === "2" ? 2 : 1,
    rootless: security.some((option) => option.startsWith("name=rootless")),
    userBase: security.some((option) => option.startsWith("name=userns"))
      ? userBase(info.DockerRootDir ?? "")
      : 0,
    cpus: info.NCPU ?? 1,
    memoryBytes: info.MemTotal ?? 0,
    runtimes: Object.keys(info.Runtimes ?? {}),
  };
}

/** A remapped daemon keeps its data in `<root>/<uid>.<gid>`; nothing else in its answers names the first uid. */
function userBase(rootDir: string): number {
  const uid = /\/(\d+)\.\d+\/?$/.exec(rootDir)?.[1];
  return uid === undefined ? 0 : Number(uid);
}

export async function askEngine(client: EngineClient): Promise<EngineAnswers> {
  try {
    const [info, version] = await Promise.all([
      client.call("info", () => client.docker.info(), 15_000),
      client.call("version", () => client.docker.version(), 15_000),
    ]);
    return { info, version };
  } catch (error) {
    throw asRunnerError("describe itself at", client.endpoint, error);
  }
}

export type FilesystemProbe =
  | { readonly kind: "probed"; readonly shares: boolean }
  /** The engine has no image to probe with: likely the same host, judged by name and kernel. */
  | { readonly kind: "guessed"; readonly shares: boolean };

/**
 * Whether paths here mean the same to the engine. Writes a file with a random name and asks for a container that
 * mounts it: an engine that does not see the file refuses the create. The container is never started. About 15 ms,
 * once per engine. A comparison of boot ids would need a running container, and says nothing of paths.
 */
export async function probeFilesystem(
  client: EngineClient,
  probeDir: string,
  { info }: EngineAnswers,
  logger: Logger,
): Promise<FilesystemProbe> {
  const guess = client.isLocalSocket && info.Name === hostname() && info.KernelVersion === release();
  const [image] = await client.call("list images", () => client.docker.listImages());
  if (image === undefined) return { kind: "guessed", shares: guess };
  const path = join(probeDir, `.bulkhead-probe-${randomBytes(12).toString("hex")}`);
  await writeFile(path, "", { flag: "wx", mode: 0o600 });
  try {
    const probe = await client.call("create container", () =>
      client.docker.createContainer({
        Image: image.Id,
        Entrypoint: ["true"],
        Cmd: [],
        NetworkDisabled: true,
        HostConfig: {
          NetworkMode: "none",
          Mounts: [{ Type: "bind", Source: path, Target: "/probe", ReadOnly: true }],
        },
      }),
    );
    await removeContainer(client, probe.id);
    return { kind: "probed", shares: true };
  } catch (error) {
    if (isGone(error)) return { kind: "guessed", shares: guess };
    if (statusOf(error) === null) throw asRunnerError("probe", probeDir, error);
    logger.info(
      { endpoint: client.endpoint, error: messageOf(error) },
      "the engine does not share our file system",
    );
    return { kind: "probed", shares: false };
  } finally {
    await rm(path, { force: true });
  }
}
