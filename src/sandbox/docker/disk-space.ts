/**
 * Which of the places that the sandbox may write to was full at its end.
 *
 * Theory of operation. The workspace's file system is looked at from the host. The scratch file systems live in the container's own
 * mount namespace, which goes with its last process: a directory handle taken at the start keeps them until they were looked at.
 * Trust: the places are mount points below a read-only root, so nothing inside can put a link there; the type is checked all the same.
 */
import { constants } from "node:fs";
import { type FileHandle, open, statfs } from "node:fs/promises";
import type { SandboxSpec } from "../sandbox.ts";
import { tmpfsTargets } from "./create-body.ts";
import type { EngineContext } from "./engine-context.ts";

/** Less free space than this is full: a file system refuses writes a little before zero. */
const FULL_BELOW_BYTES = 64 * 1024;
const TMPFS_MAGIC = 0x01021994;

export interface FullPlace {
  readonly cap: "disk" | "tmp";
  readonly place: string;
  readonly usedBytes: number;
  readonly of: "bytes" | "files";
}

export interface ScratchSpaces {
  /** The first that is full, or null. */
  findFull(): Promise<FullPlace | null>;
  /** MUST be called: what is held takes memory. Safe to repeat. */
  release(): Promise<void>;
}

/** Takes hold of /tmp and HOME; of none where the container's processes are not ours to look at. */
export async function holdScratchSpaces(
  context: EngineContext,
  spec: SandboxSpec,
  pid: number | null,
): Promise<ScratchSpaces> {
  const held: Array<{ place: string; handle: FileHandle }> = [];
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  for (const place of pid === null || !context.sharesHost ? [] : tmpfsTargets(spec)) {
    // Ended meanwhile, or /proc/<pid>/root is refused to this user: then nothing can be said of it.
    const handle = await open(`/proc/${pid}/root${place}`, flags).catch(() => null);
    if (handle !== null) held.push({ place, handle });
  }
  return {
    async findFull() {
      for (const { place, handle } of held) {
        const space = await statfs(`/proc/self/fd/${handle.fd}`);
        const full = space.type === TMPFS_MAGIC ? fullness(space) : null;
        if (full !== null) return { cap: "tmp", place, ...full };
      }
      return null;
    },
    async release() {
      for (const { handle } of held.splice(0)) await handle.close();
    },
  };
}

/** The workspace, where it is full; null where it is not, or cannot be seen, or has no file system of its own to be full. */
export async function findFullWorkspace(
  context: EngineContext,
  spec: SandboxSpec,
): Promise<FullPlace | null> {
  if (spec.caps.diskBytes === null || spec.diskEnforced === null || !context.sharesHost) return null;
  try {
    const found = await writableDirectory(context, spec);
    if (found === null) return null;
    const full = fullness(await statfs(found.directory));
    return full === null ? null : { cap: "disk", place: found.target, ...full };
  } catch {
    // Unmounted already, or the volume is gone: nothing can be said.
    return null;
  }
}

function fullness(space: {
  readonly bavail: number;
  readonly bfree: number;
  readonly blocks: number;
  readonly bsize: number;
  readonly ffree: number;
  readonly files: number;
}): Pick<FullPlace, "usedBytes" | "of"> | null {
  const usedBytes = (space.blocks - space.bfree) * space.bsize;
  if (space.bavail * space.bsize < FULL_BELOW_BYTES) return { usedBytes, of: "bytes" };
  return space.files > 0 && space.ffree === 0 ? { usedBytes, of: "files" } : null;
}

/** Where what the sandbox writes to its workspace ends up: the bind's source, or the upper layer of an overlay volume. */
async function writableDirectory(
  { client }: EngineContext,
  spec: SandboxSpec,
): Promise<{ directory: string; target: string } | null> {
  const workspace = spec.mounts.find(
    ({ target }) => spec.workingDir === target || spec.workingDir.startsWith(`${target}/`),
  );
  if (workspace === undefined) return null;
  const { target } = workspace;
  if (workspace.type === "bind") return { directory: workspace.source, target };
  const volume = await client.call("inspect volume", () =>
    client.docker.getVolume(workspace.volume).inspect(),
  );
  const mountOptions = new Map(Object.entries(volume.Options ?? {})).get("o") ?? "";
  const directory = /(?:^|,)upperdir=([^,]+)/.exec(mountOptions)?.[1];
  return directory === undefined ? null : { directory, target };
}
