import { mkdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type AttemptFiles, makePrivateDir, writeAttemptFiles } from "./attempt-files.ts";
import type { AttemptRequest } from "./executor.ts";
import type { LocalExecutorDeps, UndoStep } from "./executor-deps.ts";
import { linkManifest } from "./link-manifest.ts";

/** Makes the directory that is mounted at /run/bulkhead: the files an attempt is told by, and the socket with its own bus behind it. */
export async function openAttemptDoor(
  deps: LocalExecutorDeps,
  request: AttemptRequest,
  snapshot: { commit: string; manifestPath: string },
  imageDigest: string,
  beganMs: number,
  undo: UndoStep[],
): Promise<{ doorDir: string; files: AttemptFiles }> {
  await makePrivateDir(join(deps.stateDir, "d"));
  const doorDir = join(deps.stateDir, "d", deps.newDoorId());
  // 0755: the agent's uid must pass through it inside the container; on the host its parent is private.
  await mkdir(doorDir, { mode: 0o755 });
  undo.push({ what: "the door directory", run: () => rm(doorDir, { recursive: true, force: true }) });
  const space = await statfs(deps.stateDir);
  const host = {
    imageDigest,
    cpus: deps.engineInfo.cpus,
    memoryBytes: deps.engineInfo.memoryBytes,
    diskFreeBytes: space.bavail * space.bsize,
    engine: `${deps.engineInfo.product} ${deps.engineInfo.version}`,
  };
  const files = await writeAttemptFiles(doorDir, request, snapshot.commit, host, beganMs);
  await files.writeMetadata(null);
  await linkManifest(snapshot.manifestPath, join(doorDir, "workspace_manifest.json"));
  const bus = deps.busFor(request.key, () => files.context);
  const door = await deps.openDoor({
    socketPath: join(doorDir, "door.sock"),
    mode: 0o666,
    handlers: { frame: (text) => bus.frame(text), oversize: (limit) => bus.oversize(limit) },
  });
  undo.push({ what: "the door", run: () => door.close(0) });
  return { doorDir, files };
}
