/**
 * The Docker driver of `sandbox/`: one `Engine` over one endpoint.
 *
 * Theory of operation. `engine-client` bounds each request; `create-body` is what a sandbox is; `create-sandbox` and
 * `running-sandbox` are its life; `exit-watch` (one event stream) tells ends; `read-caps` and `usage-meter` read the
 * kernel. Trust: the engine is trusted to be what it is, but not believed where the kernel can be asked.
 */
import type { ImageInspectInfo } from "dockerode";
import type { Logger } from "../../util/logger.ts";
import { createSemaphore } from "../../util/semaphore.ts";
import type { Engine, EngineInfo } from "../sandbox.ts";
import { mountedHierarchies, readKernelFile } from "./cgroup-files.ts";
import type { ImageFacts } from "./create-body.ts";
import { createSandbox } from "./create-sandbox.ts";
import { askEngine, describeAnswers, probeFilesystem } from "./describe-engine.ts";
import { createEngineClient, type EngineClient, isGone } from "./engine-client.ts";
import type { EngineContext } from "./engine-context.ts";
import { createExitWatch } from "./exit-watch.ts";
import { type OwnGroup, ownGroupOf } from "./own-group.ts";
import { asRunnerError, removeContainer } from "./remove-container.ts";
import { countVolume, locateVolume } from "./volume-size.ts";
import {
  createVolume,
  getArchive,
  hasLabels,
  labelFilter,
  listVolumes,
  putArchive,
  removeVolume,
} from "./volumes.ts";

/** Podman lowers its own limit to this, and may not give a container a higher one. */
const PODMAN_MAX_PROCESSES = 32_768;
const LOST_AFTER_MS = 30_000;

export interface DockerEngineOptions {
  /** `unix:///path` or `tcp://host:port` (also http and https). */
  readonly endpoint: string;
  readonly logger: Logger;
  /** A writable directory in which to test whether the engine shares our file system. */
  readonly probeDir: string;
  /** Directory with ca.pem, cert.pem and key.pem for a tcp endpoint. */
  readonly tlsDir?: string;
  /** How long the engine may be unreachable before its containers count as lost. */
  readonly engineLostAfterMs?: number;
}

/** Connects and asks the engine what it is. Throws `engine-unreachable` where none answers. */
export async function createDockerEngine(options: DockerEngineOptions): Promise<Engine> {
  const { logger } = options;
  const client = createEngineClient(options.endpoint, options.tlsDir);
  const answers = await askEngine(client);
  const { cgroupDriver, ...described } = describeAnswers(options.endpoint, answers);
  const lostAfterMs = options.engineLostAfterMs ?? LOST_AFTER_MS;
  let probed: boolean | null = null;

  async function describe(): Promise<EngineInfo> {
    if (probed !== null) return { ...described, sharesFilesystem: probed };
    const probe = await probeFilesystem(client, options.probeDir, answers, logger);
    if (probe.kind === "probed") probed = probe.shares;
    return { ...described, sharesFilesystem: probe.shares };
  }

  const hierarchies = mountedHierarchies();
  const info = await describe();
  const context: EngineContext = {
    client,
    logger,
    exits: createExitWatch(client, logger, lostAfterMs),
    gate: createSemaphore(2 * described.cpus),
    product: described.product,
    hierarchies,
    sharesHost: info.sharesFilesystem && client.isLocalSocket,
    // systemd keeps a slice for each parent it is given, and without root no group can be removed.
    hasOwnGroups:
      info.sharesFilesystem &&
      described.product === "docker" &&
      cgroupDriver === "cgroupfs" &&
      !described.rootless &&
      process.getuid?.() === 0,
    maxUserProcesses: maxUserProcesses(),
    lostAfterMs,
    provenCaps: new Set(),
    findImage: imageFinder(client),
  };

  return {
    describe,
    async inspectImage(image) {
      const found = await inspectImage(client, image);
      return (
        found && { id: found.Id, workingDir: found.Config.WorkingDir ?? "", user: found.Config.User ?? "" }
      );
    },
    create: (spec) => createSandbox(context, spec),
    async list(labels) {
      try {
        const found = await client.call("list containers", () =>
          client.docker.listContainers({ all: true, filters: { label: labelFilter(labels) } }),
        );
        return found
          .filter((one) => hasLabels(one.Labels, labels))
          .map((one) => ({
            id: one.Id,
            name: (one.Names[0] ?? "").replace(/^\//, ""),
            state: one.State,
            labels: one.Labels,
            createdMs: one.Created * 1_000,
          }));
      } catch (error) {
        throw asRunnerError("list", "containers", error);
      }
    },
    removeById: (id) => removeFound(context, id),
    createVolume: (spec) => createVolume(context, spec),
    removeVolume: (name) => removeVolume(context, name),
    listVolumes: (labels) => listVolumes(context, labels),
    locateVolume: (name) => locateVolume(context, name),
    countVolume: (name) => countVolume(context, name),
    putArchive: (volume, image, tar, rootUid) => putArchive(context, volume, image, tar, rootUid),
    getArchive: (volume, image) => getArchive(context, volume, image),
    async close() {
      context.exits.close();
    },
  };
}

/** Removes a container of an earlier process too, with the group that process had made for it. */
async function removeFound(context: EngineContext, id: string): Promise<void> {
  const { client } = context;
  let group: OwnGroup | null = null;
  try {
    const { Name, HostConfig } = await client.call("inspect container", () =>
      client.docker.getContainer(id).inspect(),
    );
    const own = ownGroupOf(Name.replace(/^\//, ""), HostConfig.PidsLimit ?? 0, context.hierarchies);
    if (HostConfig.CgroupParent === own.parentPath) group = own;
  } catch (error) {
    if (isGone(error)) return;
    throw asRunnerError("inspect container", id, error);
  }
  await removeContainer(client, id);
  await group?.remove(context.logger);
}

async function inspectImage(client: EngineClient, image: string): Promise<ImageInspectInfo | null> {
  try {
    return await client.call("inspect image", () => client.docker.getImage(image).inspect());
  } catch (error) {
    if (isGone(error)) return null;
    throw asRunnerError("inspect image", image, error);
  }
}

/** What a digest names never changes, a tag's image does: only digests are remembered. */
function imageFinder(client: EngineClient): EngineContext["findImage"] {
  const known = new Map<string, ImageFacts>();
  return async (image) => {
    const remembered = known.get(image);
    if (remembered !== undefined) return remembered;
    const found = await inspectImage(client, image);
    if (found === null) return null;
    const facts: ImageFacts = {
      id: found.Id,
      env: found.Config.Env ?? [],
      volumes: Object.keys(found.Config.Volumes ?? {}),
    };
    if (image === found.Id) known.set(image, facts);
    return facts;
  };
}

function maxUserProcesses(): number | null {
  const hard = /^Max processes\s+\S+\s+(\d+)/m.exec(readKernelFile("/proc/self/limits") ?? "")?.[1];
  return hard === undefined ? null : Math.min(Number(hard), PODMAN_MAX_PROCESSES);
}
