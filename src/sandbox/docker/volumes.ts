import type { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { RunnerError } from "../../model/runner-error.ts";
import type { VolumeSpec } from "../sandbox.ts";
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
    await client.call("create volume", () =>
      client.docker.createVolume({
        Name: spec.name,
        Driver: "local",
        DriverOpts: options,
        Labels: { ...spec.labels },
      }),
    );
    const made = await client.call("inspect volume", () => client.docker.getVolume(spec.name).inspect());
    if (isSame(made.Options ?? {}, options) && isSame(made.Labels, spec.labels)) return;
  } catch (error) {
    throw asRunnerError("create volume", spec.name, error);
  }
  throw new RunnerError("workspace-failed", `volume ${spec.name} exists with other options or labels`, {
    data: { volume: spec.name },
    hint: `see: docker volume inspect ${spec.name}`,
  });
}

function isSame(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

export async function removeVolume({ client }: EngineContext, name: string): Promise<void> {
  try {
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
): Promise<void> {
  const { client } = context;
  const id = await createCarrier(context, volume, image);
  try {
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
    finished(stream)
      .catch(() => undefined)
      .then(() => removeContainer(client, id))
      .catch((error: unknown) =>
        logger.warn({ id, error: String(error) }, "a carrier container was left behind"),
      );
    return stream;
  } catch (error) {
    await removeContainer(client, id);
    throw asRunnerError("read volume", volume, error);
  }
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
            Mounts: [{ Type: "volume", Source: volume, Target: MOUNTED_AT }],
          },
        }),
      ),
    );
    return carrier.id;
  } catch (error) {
    throw asRunnerError("carry volume", volume, error);
  }
}
