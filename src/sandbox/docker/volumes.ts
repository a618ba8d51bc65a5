import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import type Dockerode from "dockerode";
import { pack } from "tar-stream";
import { RunnerError } from "../../model/runner-error.ts";
import type { VolumeSpec } from "../sandbox.ts";
import { NO_COPY } from "./create-body.ts";
import { isGone } from "./engine-client.ts";
import type { EngineContext } from "./engine-context.ts";
import { asRunnerError, removeContainer } from "./remove-container.ts";

const MOUNTED_AT = "/workspace";
/** Archives of large workspaces take minutes; no answer at all for this long is a dead engine. */
const ARCHIVE_LIMIT_MS = 30 * 60_000;

/** Creates a volume and checks that it is the asked one: engines answer an existing name with its old options. */
export async function createVolume({ client }: EngineContext, spec: VolumeSpec): Promise<void> {
  const options = { ...spec.driverOptions };
  try {
    const made = await client.call("create volume", () => postVolume(client.docker, spec));
    if (isSame(made.Options ?? {}, options) && isSame(made.Labels, spec.labels)) return;
  } catch (error) {
    throw asRunnerError("create volume", spec.name, error);
  }
  throw new RunnerError("workspace-failed", `volume ${spec.name} exists with other options or labels`, {
    data: { volume: spec.name },
    hint: `see: docker volume inspect ${spec.name}`,
  });
}

/** The answer tells what the volume is; dockerode's own method keeps the name alone, which would take a second request. */
function postVolume(docker: Dockerode, spec: VolumeSpec): Promise<Dockerode.VolumeInspectInfo> {
  const request = {
    path: "/volumes/create",
    method: "POST",
    options: {
      Name: spec.name,
      Driver: "local",
      DriverOpts: { ...spec.driverOptions },
      Labels: { ...spec.labels },
    },
    statusCodes: { 200: true, 201: true },
  };
  return new Promise((resolve, reject) => {
    docker.modem.dial(request, (error: unknown, answer?: unknown) =>
      error ? reject(error) : resolve(answer as Dockerode.VolumeInspectInfo),
    );
  });
}

function isSame(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

export async function removeVolume(context: EngineContext, name: string): Promise<void> {
  const { client } = context;
  try {
    // One that has just been read is still held by the container that read it.
    await carriersOf(context).get(name);
    await client.call("remove volume", () => client.docker.getVolume(name).remove());
  } catch (error) {
    if (!isGone(error)) throw asRunnerError("remove volume", name, error);
  }
}

export async function listVolumes(
  { client }: EngineContext,
  labels: Readonly<Record<string, string>>,
): Promise<ReadonlyArray<{ name: string; labels: Readonly<Record<string, string>> }>> {
  try {
    const { Volumes } = await client.call("list volumes", () =>
      client.docker.listVolumes({ filters: { label: labelFilter(labels) } }),
    );
    // Podman takes several labels as "any of"; the contract is "all of".
    return (Volumes ?? [])
      .map((volume) => ({ name: volume.Name, labels: volume.Labels ?? {} }))
      .filter((volume) => hasLabels(volume.labels, labels));
  } catch (error) {
    throw asRunnerError("list", "volumes", error);
  }
}

export function labelFilter(labels: Readonly<Record<string, string>>): string[] {
  return Object.entries(labels).map(([key, value]) => `${key}=${value}`);
}

export function hasLabels(
  have: Readonly<Record<string, string>>,
  want: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(want).every(([key, value]) => have[key] === value);
}

export async function putArchive(
  context: EngineContext,
  volume: string,
  image: string,
  tar: NodeJS.ReadableStream,
  rootUid?: number,
): Promise<void> {
  const { client } = context;
  const id = await createCarrier(context, volume, image);
  try {
    if (rootUid !== undefined) await ownRoot(context, id, rootUid);
    await client.call(
      "put archive",
      () =>
        client.docker.getContainer(id).putArchive(tar, { path: MOUNTED_AT, noOverwriteDirNonDir: "true" }),
      ARCHIVE_LIMIT_MS,
    );
  } catch (error) {
    throw asRunnerError("unpack into volume", volume, error);
  } finally {
    await removeContainer(client, id);
  }
}

/** Docker passes over an archive's own `./` entry, so the volume's top directory gets its owner by way of the directory above. */
async function ownRoot({ client }: EngineContext, id: string, uid: number): Promise<void> {
  const tar = pack();
  tar.entry({ name: `${MOUNTED_AT.slice(1)}/`, type: "directory", mode: 0o755, uid, gid: uid });
  tar.finalize();
  await client.call("put archive", () =>
    client.docker.getContainer(id).putArchive(Readable.from(tar), { path: "/" }),
  );
}

/** The entries are named relative to the volume. The carrier goes when the stream ends or is destroyed. */
export async function getArchive(
  context: EngineContext,
  volume: string,
  image: string,
): Promise<NodeJS.ReadableStream> {
  const { client, logger } = context;
  const id = await createCarrier(context, volume, image);
  try {
    const stream = (await client.call("get archive", () =>
      client.docker.getContainer(id).getArchive({ path: `${MOUNTED_AT}/.` }),
    )) as Readable;
    const carriers = carriersOf(context);
    const gone = finished(stream)
      .catch(() => undefined)
      .then(() => removeContainer(client, id))
      .catch((error: unknown) =>
        logger.warn({ id, error: String(error) }, "a carrier container was left behind"),
      )
      .finally(() => {
        if (carriers.get(volume) === gone) carriers.delete(volume);
      });
    carriers.set(volume, gone);
    return stream;
  } catch (error) {
    await removeContainer(client, id);
    throw asRunnerError("read volume", volume, error);
  }
}

/** Containers that are about to go, by the volume that they hold. */
const carriersByEngine = new WeakMap<EngineContext, Map<string, Promise<void>>>();

function carriersOf(context: EngineContext): Map<string, Promise<void>> {
  const carriers = carriersByEngine.get(context) ?? new Map<string, Promise<void>>();
  carriersByEngine.set(context, carriers);
  return carriers;
}

/** A container that is never started: the engine reads and writes its file system all the same. Labels as the volume's. */
async function createCarrier(
  { client, gate }: EngineContext,
  volume: string,
  image: string,
): Promise<string> {
  try {
    // Asked first: a mount of an unknown volume would make a new one.
    const { Labels } = await client.call("inspect volume", () => client.docker.getVolume(volume).inspect());
    const carrier = await gate.use(() =>
      client.call("create container", () =>
        client.docker.createContainer({
          Image: image,
          Entrypoint: ["true"],
          Cmd: [],
          NetworkDisabled: true,
          Labels: { ...Labels },
          HostConfig: {
            NetworkMode: "none",
            CapDrop: ["ALL"],
            Mounts: [{ Type: "volume", Source: volume, Target: MOUNTED_AT, VolumeOptions: NO_COPY }],
          },
        }),
      ),
    );
    return carrier.id;
  } catch (error) {
    throw asRunnerError("carry volume", volume, error);
  }
}
