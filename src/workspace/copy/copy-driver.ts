/**
 * Workspaces by copying: a plain volume, filled through the engine's API. For engines that do not share this process's file system (a
 * remote one, a desktop VM) and for a supervisor without root. The copy's index carries the stats of other files, so the first
 * `git status` inside hashes every file once. The engine has no limit for a volume's size: `diskCap` is `none`.
 */
import { Readable } from "node:stream";
import { AGENT_UID } from "../../model/agent-user.ts";
import { formatAttempt } from "../../model/ids.ts";
import { RunnerError } from "../../model/runner-error.ts";
import type { Clock } from "../../util/clock.ts";
import { importFromTar } from "../import/tar-import.ts";
import { volumeName } from "../volume-name.ts";
import type { OpenRequest, VolumePort, Workspace, WorkspaceDriver } from "../workspace.ts";
import { packLayers } from "./pack-layers.ts";

export interface CopyDriverOptions {
  readonly store: { readonly gitDir: string };
  readonly volumes: VolumePort;
  readonly clock: Clock;
}

/** Makes the copy driver. Works with every engine. */
export function createCopyDriver(options: CopyDriverOptions): WorkspaceDriver {
  const { volumes } = options;
  return {
    name: "copy",
    async open(request) {
      const workspace = describeWorkspace(options, request);
      try {
        await volumes.createVolume({ name: workspace.volume, labels: request.labels });
        // Owners in the archive are those inside: a user namespace is the engine's own business.
        const tar = packLayers(request.snapshot.layers, AGENT_UID);
        try {
          await volumes.putArchive(workspace.volume, request.image, tar, AGENT_UID);
        } finally {
          tar.destroy();
        }
        return workspace;
      } catch (error) {
        // What was made so far goes again; the error that counts is the first.
        await workspace.release().catch(() => undefined);
        throw error;
      }
    },
  };
}

function describeWorkspace({ store, volumes, clock }: CopyDriverOptions, request: OpenRequest): Workspace {
  const { key, snapshot, message, image } = request;
  const volume = volumeName(request);
  return {
    driver: "copy",
    volume,
    devicePath: null,
    diskCap: "none",
    diskNote: "the workspace is a copy in a volume of the engine, which has no size limit",
    async readPatch(limits) {
      const tar = await volumes.getArchive(volume, image);
      try {
        return await importFromTar({
          gitDir: store.gitDir,
          snapshot,
          tar,
          spoolDir: request.attemptDir,
          key,
          limits,
          message,
          ...(request.exclude === undefined ? {} : { exclude: request.exclude }),
          atMs: clock.nowMs(),
        });
      } finally {
        // An import that met a limit has stopped reading.
        if (tar instanceof Readable) tar.destroy();
      }
    },
    async release() {
      try {
        await volumes.removeVolume(volume);
      } catch (cause) {
        throw new RunnerError("workspace-failed", `the volume ${volume} of ${formatAttempt(key)} stays`, {
          cause,
          data: { volume },
        });
      }
    },
  };
}
