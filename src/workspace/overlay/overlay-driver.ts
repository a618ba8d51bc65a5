/**
 * Workspaces by overlayfs: the snapshot's layers below, an empty directory of the attempt's own on top. The engine mounts it, as a
 * volume, when the container starts; opening one costs the same whatever the size of the repository.
 *
 *   <attempt>/upper, work    what the attempt writes; on a file system of its own (`disk`, in `disk.img`) where its size is capped
 *   <attempt>/merged         the same over the layers, mounted read-only while the patch is read
 *
 * Theory of operation: one workspace is one volume is one container. `open` is idempotent: after a restart of the supervisor it gives the
 * workspace of a container that still runs. The patch is read when the container is removed, hence unmounted, and nothing moves.
 */
import { access, chown, mkdir, opendir } from "node:fs/promises";
import { join } from "node:path";
import { AGENT_UID } from "../../model/agent-user.ts";
import { formatAttempt } from "../../model/ids.ts";
import { RunnerError } from "../../model/runner-error.ts";
import type { Clock } from "../../util/clock.ts";
import { importNothing } from "../import/empty-import.ts";
import { importFromOverlay } from "../import/overlay-import.ts";
import { removeTree } from "../remove-tree.ts";
import { runSteps } from "../run-steps.ts";
import { volumeName } from "../volume-name.ts";
import type { OpenRequest, VolumePort, Workspace, WorkspaceDriver } from "../workspace.ts";
import { closeDiskImage, createDiskImage, imagePaths } from "./disk-image.ts";
import { mountForReading, unmount, writableOptions } from "./mounts.ts";

export interface OverlayDriverOptions {
  readonly store: { readonly gitDir: string };
  readonly volumes: VolumePort;
  readonly clock: Clock;
  /** First host uid of the engine's user namespace (0 without one). */
  readonly userBase?: number;
}

/** Makes the overlay driver. Needs root, and an engine that sees this process's file system (see `probeOverlay`). */
export function createOverlayDriver(options: OverlayDriverOptions): WorkspaceDriver {
  const uid = (options.userBase ?? 0) + AGENT_UID;
  return {
    name: "overlay",
    async open(request) {
      const disk = await prepareDisk(request);
      const workspace = describeWorkspace(options, request, disk);
      try {
        await prepare(options.volumes, request, disk, uid);
        return workspace;
      } catch (error) {
        // What was made so far goes again; the error that counts is the first.
        await workspace.release().catch(() => undefined);
        throw error;
      }
    },
  };
}

interface Places {
  readonly upper: string;
  readonly work: string;
  readonly merged: string;
}

/** What the upper directory lies on: an image of its own that limits its size, or the state directory's file system. */
type Disk = { readonly kind: "image" } | { readonly kind: "shared"; readonly why?: string };

/**
 * Makes the image that a disk cap asks for. Where the machine cannot (no loop devices, no mke2fs), the attempt goes on without, and the
 * workspace says so: whether that will do is for the caller to decide.
 */
async function prepareDisk({ attemptDir, diskBytes }: OpenRequest): Promise<Disk> {
  if (diskBytes === null) return { kind: "shared" };
  if (await exists(placesOf(attemptDir, { kind: "image" }).upper)) return { kind: "image" };
  try {
    await createDiskImage(attemptDir, diskBytes);
    return { kind: "image" };
  } catch (error) {
    if (!(error instanceof RunnerError)) throw error;
    const { image, directory } = imagePaths(attemptDir);
    await removeTree(image, directory);
    return { kind: "shared", why: `no disk image can be made here: ${error.message}` };
  }
}

function placesOf(attemptDir: string, disk: Disk): Places {
  const top = disk.kind === "image" ? imagePaths(attemptDir).directory : attemptDir;
  return { upper: join(top, "upper"), work: join(top, "work"), merged: join(attemptDir, "merged") };
}

async function prepare(volumes: VolumePort, request: OpenRequest, disk: Disk, uid: number): Promise<void> {
  const { upper, work } = placesOf(request.attemptDir, disk);
  const o = writableOptions({ layers: request.snapshot.layers, upper, work });
  await mkdir(upper, { recursive: true, mode: 0o755 });
  await mkdir(work, { recursive: true, mode: 0o700 });
  // The top of the merged view is the upper directory itself, as far as owner and mode go.
  await chown(upper, uid, uid);
  await volumes.createVolume({
    name: volumeName(request),
    labels: request.labels,
    driverOptions: { type: "overlay", device: "overlay", o },
  });
}

function describeWorkspace(options: OverlayDriverOptions, request: OpenRequest, disk: Disk): Workspace {
  const { upper, work, merged } = placesOf(request.attemptDir, disk);
  const { attemptDir, key, snapshot, message } = request;
  const volume = volumeName(request);
  return {
    driver: "overlay",
    volume,
    devicePath: upper,
    diskCap: disk.kind === "image" ? "hard" : "none",
    ...(disk.kind === "shared" && disk.why !== undefined ? { diskNote: disk.why } : {}),
    async readPatch(limits) {
      const common = {
        gitDir: options.store.gitDir,
        snapshot,
        key,
        limits,
        message,
        ...(request.exclude === undefined ? {} : { exclude: request.exclude }),
        atMs: options.clock.nowMs(),
      };
      // Where nothing was written there is no merged view to look at.
      if (await isUntouched(upper)) return importNothing(common);
      await mkdir(merged, { recursive: true, mode: 0o700 });
      await mountForReading([upper, ...snapshot.layers], merged);
      try {
        return await importFromOverlay({ ...common, upperDir: upper, mergedDir: merged });
      } finally {
        await unmount(merged);
      }
    },
    async release() {
      const failures = await runSteps([
        () => options.volumes.removeVolume(volume),
        () => unmount(merged),
        () => closeDiskImage(attemptDir),
        () => {
          const { image, directory } = imagePaths(attemptDir);
          return removeTree(upper, work, merged, directory, image);
        },
      ]);
      if (failures.length === 0) return;
      throw new RunnerError(
        "workspace-failed",
        `the workspace of ${formatAttempt(key)} was not removed whole`,
        {
          cause: failures.length === 1 ? failures[0] : new AggregateError(failures),
          data: { volume, attemptDir, failures: failures.map(String) },
        },
      );
    },
  };
}

/** The agent can add names to the upper directory only: no entry, no change. */
async function isUntouched(upper: string): Promise<boolean> {
  const directory = await opendir(upper, { encoding: "latin1", bufferSize: 1 });
  try {
    return (await directory.read()) === null;
  } finally {
    await directory.close();
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
