import type { IncomingMessage } from "node:http";
import type { Container } from "dockerode";
import type { SandboxSpec } from "../sandbox.ts";
import { bindMounts, envValue, sandboxLabels } from "./create-body.ts";
import { type EngineClient, messageOf, statusOf } from "./engine-client.ts";
import type { EngineContext } from "./engine-context.ts";
import { removeContainer } from "./remove-container.ts";

const MAX_DIRECTORIES = 32;
const ANY_EXECUTE_BIT = 0o111;
/** Bits of Go's `os.FileMode`, which the engine's answer uses. */
const GO_MODE_DIR = 0x8000_0000;
const GO_MODE_SYMLINK = 0x0800_0000;

/**
 * Whether the command of a sandbox cannot have been started, asked of a file system rather than guessed from what was
 * printed: a shell that ends with 127 for a command of its own is no missing command of the task. Looked for in a
 * container of the same image and bind mounts that is never started: the sandbox's own volume can be mounted only once.
 * LIMITATION: a path in a volume (the workspace) cannot be looked at and does not count as missing.
 */
export async function isCommandMissing(context: EngineContext, spec: SandboxSpec): Promise<boolean> {
  const paths = candidates(spec);
  const volumes = spec.mounts.filter(({ type }) => type === "volume").map(({ target }) => target);
  if (paths.some((path) => volumes.some((target) => path.startsWith(`${target}/`)))) return false;
  let twin: Container | null = null;
  try {
    twin = await openTwin(context, spec);
    if (twin === null) return false;
    for (const path of paths) {
      if (await isExecutable(context.client, twin, path)) return false;
    }
    return true;
  } catch (error) {
    context.logger.warn(
      { name: spec.name, error: messageOf(error) },
      "cannot look for the command of a sandbox",
    );
    return false;
  } finally {
    if (twin !== null) await removeContainer(context.client, twin.id);
  }
}

function candidates(spec: SandboxSpec): readonly string[] {
  const command = spec.argv[0] ?? "";
  if (command.startsWith("/")) return [command];
  if (command.includes("/")) return [`${spec.workingDir}/${command}`];
  return (envValue(spec, "PATH") ?? "")
    .split(":")
    .filter((directory) => directory.startsWith("/"))
    .slice(0, MAX_DIRECTORIES)
    .map((directory) => `${directory}/${command}`);
}

async function openTwin(
  { client, gate, findImage }: EngineContext,
  spec: SandboxSpec,
): Promise<Container | null> {
  const image = await findImage(spec.image);
  if (image === null) return null;
  return await gate.use(() =>
    client.call("create container", () =>
      client.docker.createContainer({
        Image: image.id,
        Entrypoint: ["true"],
        Cmd: [],
        NetworkDisabled: true,
        Labels: sandboxLabels(spec),
        HostConfig: { NetworkMode: "none", CapDrop: ["ALL"], Mounts: bindMounts(spec) },
      }),
    ),
  );
}

/** A link counts as executable: where it leads is not followed. */
async function isExecutable(client: EngineClient, container: Container, path: string): Promise<boolean> {
  try {
    const answer: IncomingMessage = await client.call("look for the command", () =>
      container.infoArchive({ path }),
    );
    answer.resume();
    const mode = readMode(answer.headers["x-docker-container-path-stat"]);
    return (mode & GO_MODE_DIR) === 0 && (mode & (GO_MODE_SYMLINK | ANY_EXECUTE_BIT)) !== 0;
  } catch (error) {
    if (statusOf(error) === 404) return false;
    throw error;
  }
}

/** An answer that cannot be read counts as "executable": nothing is claimed then. */
function readMode(header: string | string[] | undefined): number {
  if (typeof header !== "string") return ANY_EXECUTE_BIT;
  const stat: unknown = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
  const hasMode = typeof stat === "object" && stat !== null && "mode" in stat;
  return hasMode && typeof stat.mode === "number" ? stat.mode : ANY_EXECUTE_BIT;
}
