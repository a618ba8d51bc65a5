import { statfs } from "node:fs/promises";
import type { SandboxSpec } from "../sandbox.ts";
import type { EngineContext } from "./engine-context.ts";

/** Less free space than this is full: a file system refuses writes a little before zero. */
const FULL_BELOW_BYTES = 64 * 1024;

/** Whether the workspace's file system is full, looked at from the host after the end; false where it cannot be seen. */
export async function isDiskFull(context: EngineContext, spec: SandboxSpec): Promise<boolean> {
  if (spec.caps.diskBytes === null || !context.sharesHost) return false;
  try {
    const directory = await writableDirectory(context, spec);
    if (directory === null) return false;
    const { bavail, bsize, ffree, files } = await statfs(directory);
    return bavail * bsize < FULL_BELOW_BYTES || (files > 0 && ffree === 0);
  } catch {
    // Unmounted already, or the volume is gone: nothing can be said.
    return false;
  }
}

/** Where what the sandbox writes to its workspace ends up: the bind's source, or the upper layer of an overlay volume. */
async function writableDirectory({ client }: EngineContext, spec: SandboxSpec): Promise<string | null> {
  const workspace = spec.mounts.find(
    ({ target }) => spec.workingDir === target || spec.workingDir.startsWith(`${target}/`),
  );
  if (workspace === undefined) return null;
  if (workspace.type === "bind") return workspace.source;
  const volume = await client.call("inspect volume", () =>
    client.docker.getVolume(workspace.volume).inspect(),
  );
  const mountOptions = new Map(Object.entries(volume.Options ?? {})).get("o") ?? "";
  return /(?:^|,)upperdir=([^,]+)/.exec(mountOptions)?.[1] ?? null;
}
