import type { Failure } from "../model/failure.ts";
import { ok, type Result } from "../util/result.ts";
import {
  type BuiltTree,
  ensureBaseTree,
  manifestPath,
  type TreeContext,
  treeDirectory,
} from "./base-tree.ts";
import { createBuildOnce } from "./build-once.ts";
import { type ExtraFile, readExtraFiles } from "./extra-files.ts";
import { mergeParents } from "./merge-parents.ts";
import { ensureParentLayer } from "./parent-layer.ts";
import type { Snapshot, SnapshotRequest } from "./workspace.ts";

/** uid of the agent inside; the images have it. */
export const AGENT_UID = 10001;

/** Makes the snapshot half of an object store. */
export function createSnapshots(options: {
  readonly gitDir: string;
  readonly cacheDir: string;
  readonly objectFormat: "sha1" | "sha256";
  readonly userBase: number;
}): { snapshot(request: SnapshotRequest): Promise<Result<Snapshot, Failure>> } {
  const context: TreeContext = {
    gitDir: options.gitDir,
    cacheDir: options.cacheDir,
    objectFormat: options.objectFormat,
    uid: process.geteuid?.() === 0 ? options.userBase + AGENT_UID : null,
    once: createBuildOnce(),
  };
  const extras = new Map<string, ReturnType<typeof readExtraFiles>>();

  /** Read once per run, so that all its attempts see the same although the person works on. */
  async function extraFiles(request: SnapshotRequest): Promise<{ files: ExtraFile[]; warnings: string[] }> {
    const { repository, filter, runId } = request;
    const read = () => readExtraFiles(repository, filter.extra, options.objectFormat);
    if (runId === undefined || filter.extra.length === 0) return read();
    const key = JSON.stringify([runId, repository, filter.extra]);
    const known = extras.get(key) ?? read();
    extras.set(key, known);
    return known;
  }

  return {
    async snapshot(request) {
      const { baseCommit, parents, filter } = request;
      const [merged, extra] = await Promise.all([
        parents.length === 0 ? ok(baseCommit) : mergeParents(options.gitDir, baseCommit, parents),
        extraFiles(request),
      ]);
      if (!merged.ok) return merged;
      const base = await ensureBaseTree(context, baseCommit, filter, extra.files);
      if (merged.value === baseCommit) return ok(toSnapshot(base, [base], extra.warnings));
      const layer = await ensureParentLayer(context, base, merged.value, filter, extra.files);
      return ok(toSnapshot(layer, [layer, base], extra.warnings));
    },
  };
}

function toSnapshot(top: BuiltTree, layers: readonly BuiltTree[], warnings: readonly string[]): Snapshot {
  return {
    commit: top.commit,
    insideHead: top.insideHead,
    layers: layers.map(treeDirectory),
    manifestPath: manifestPath(top),
    warnings,
  };
}
