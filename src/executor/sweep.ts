import { execFile } from "node:child_process";
import type { Dirent } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Engine, LABELS } from "../sandbox/sandbox.ts";
import type { Clock } from "../util/clock.ts";
import { baseTreesDir } from "../util/state-layout.ts";
import type { SweepRequest, SweptItem } from "./executor.ts";

const run = promisify(execFile);

/** Parts of an attempt directory that hold a workspace; the log and artifacts beside them are kept. */
const WORKSPACE_DIRS = ["upper", "work", "merged", "disk", "disk.img"];

interface SweepDeps {
  readonly engine: Engine;
  readonly stateDir: string;
  readonly stateId: string;
  readonly cacheDir: string;
  readonly clock: Clock;
}

/**
 * Builds the clean-up by label and owner (never by name): containers in any state, volumes, mounts, workspace and door
 * directories of this state directory that belong to no active run, and base trees nobody used for a while.
 */
export function createSweep(deps: SweepDeps): (request: SweepRequest) => Promise<readonly SweptItem[]> {
  return async (request) => {
    const items: SweptItem[] = [];
    const remove = async (item: SweptItem, work: () => Promise<unknown>): Promise<void> => {
      if (request.dryRun) {
        items.push(item);
        return;
      }
      try {
        await work();
        items.push(item);
      } catch (error) {
        items.push({ ...item, error: error instanceof Error ? error.message : String(error) });
      }
    };
    const isLeft = (run: string | undefined): boolean => !request.activeRuns.has(run ?? "");
    const why = (run: string | undefined): string => `its run ${run ?? "(unknown)"} is not active`;
    const owner = { [LABELS.state]: deps.stateId };

    for (const found of await deps.engine.list(owner)) {
      const runId = found.labels[LABELS.run];
      if (!isLeft(runId)) continue;
      await remove({ kind: "container", name: found.name, why: `${found.state}; ${why(runId)}` }, () =>
        deps.engine.removeById(found.id),
      );
    }
    for (const volume of await deps.engine.listVolumes(owner)) {
      const runId = volume.labels[LABELS.run];
      if (!isLeft(runId)) continue;
      await remove({ kind: "volume", name: volume.name, why: why(runId) }, () =>
        deps.engine.removeVolume(volume.name),
      );
    }
    for (const mount of await mountsBelow(join(deps.stateDir, "runs"))) {
      const runId = mount.slice(join(deps.stateDir, "runs").length + 1).split("/")[0];
      if (!isLeft(runId)) continue;
      await remove({ kind: "mount", name: mount, why: why(runId) }, () => run("umount", [mount]));
    }
    for (const dir of await leftWorkspaces(deps.stateDir, isLeft)) {
      await remove({ kind: "workspace", name: dir.path, why: why(dir.runId) }, () =>
        run("rm", ["-rf", "--", dir.path]),
      );
    }
    // Doors and base trees carry no run; one that begins meanwhile may be given any of them.
    const isIdle = (): boolean => request.activeRuns.size === 0;
    const removeIdle: typeof remove = async (item, work) => {
      if (isIdle()) await remove(item, work);
    };
    if (isIdle()) {
      for (const entry of await list(join(deps.stateDir, "d"))) {
        const path = join(deps.stateDir, "d", entry.name);
        await removeIdle({ kind: "door", name: path, why: "no run is active" }, () =>
          run("rm", ["-rf", "--", path]),
        );
      }
      await sweepBaseTrees(deps.cacheDir, request.olderThanMs, deps.clock.nowMs(), removeIdle);
    }
    return items;
  };
}

async function sweepBaseTrees(
  cacheDir: string,
  olderThanMs: number | null,
  nowMs: number,
  remove: (item: SweptItem, work: () => Promise<unknown>) => Promise<void>,
): Promise<void> {
  if (olderThanMs === null) return;
  for (const entry of await list(baseTreesDir(cacheDir))) {
    const path = join(baseTreesDir(cacheDir), entry.name);
    const ageMs = nowMs - (await stat(path)).mtimeMs;
    if (ageMs < olderThanMs) continue;
    const days = Math.floor(ageMs / 86_400_000);
    await remove({ kind: "base-tree", name: path, why: `not used for ${days} days` }, () =>
      run("rm", ["-rf", "--", path]),
    );
  }
}

async function leftWorkspaces(
  stateDir: string,
  isLeft: (run: string) => boolean,
): Promise<ReadonlyArray<{ path: string; runId: string }>> {
  const left: Array<{ path: string; runId: string }> = [];
  for (const runEntry of await list(join(stateDir, "runs"))) {
    if (!isLeft(runEntry.name)) continue;
    for (const task of await list(join(stateDir, "runs", runEntry.name))) {
      const taskDir = join(stateDir, "runs", runEntry.name, task.name);
      for (const attempt of await list(taskDir)) {
        for (const part of await list(join(taskDir, attempt.name))) {
          if (WORKSPACE_DIRS.includes(part.name)) {
            left.push({ path: join(taskDir, attempt.name, part.name), runId: runEntry.name });
          }
        }
      }
    }
  }
  return left;
}

async function list(dir: string): Promise<Dirent[]> {
  try {
    return await readdir(dir, { withFileTypes: true });
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return [];
    throw error;
  }
}

/** Mount points below a directory, deepest first, from the kernel's own list. */
async function mountsBelow(dir: string): Promise<readonly string[]> {
  const table = await readFile("/proc/self/mountinfo", "utf8");
  const points: string[] = [];
  for (const line of table.split("\n")) {
    const point = line.split(" ")[4]?.replace(/\\040/g, " ");
    if (point?.startsWith(`${dir}/`)) points.push(point);
  }
  return points.sort((a, b) => b.length - a.length);
}
