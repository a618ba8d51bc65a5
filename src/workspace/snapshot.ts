import { AGENT_UID } from "../model/agent-user.ts";
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
import { type TakenSubmodules, takeSubmodules } from "./take-submodules.ts";
import type { ObjectStore, Snapshot, SnapshotRequest } from "./workspace.ts";
import { readWorktreeInclude, WORKTREE_INCLUDE } from "./worktree-include.ts";

/** Makes the snapshot half of an object store. */
export function createSnapshots(options: {
  readonly gitDir: string;
  readonly cacheDir: string;
  readonly objectFormat: "sha1" | "sha256";
  readonly userBase: number;
  readonly importCommit: ObjectStore["importCommit"];
}): { snapshot(request: SnapshotRequest): Promise<Result<Snapshot, Failure>> } {
  const context: TreeContext = {
    gitDir: options.gitDir,
    cacheDir: options.cacheDir,
    objectFormat: options.objectFormat,
    uid: process.geteuid?.() === 0 ? options.userBase + AGENT_UID : null,
    once: createBuildOnce(),
  };
  const extras = createMemo<Awaited<ReturnType<typeof readExtraFiles>>>();
  const submodules = createMemo<TakenSubmodules>();

  /** Read once per run, so that all its attempts see the same although the person works on. */
  function extraFiles(request: SnapshotRequest): Promise<{ files: ExtraFile[]; warnings: string[] }> {
    const { repository, filter, runId } = request;
    return extras(runId && JSON.stringify([runId, repository, filter.extra]), async () => {
      const include = await readWorktreeInclude(repository);
      const sources = [
        { name: "files.extra", patterns: filter.extra, isIgnoredOnly: false },
        { name: WORKTREE_INCLUDE, patterns: include.patterns, isIgnoredOnly: true },
      ];
      const { files, warnings } = await readExtraFiles(repository, sources, options.objectFormat);
      return { files, warnings: [...include.warnings, ...warnings] };
    });
  }

  function submodulesOf({ repository, baseCommit, runId }: SnapshotRequest): Promise<TakenSubmodules> {
    return submodules(runId && JSON.stringify([runId, repository, baseCommit]), () =>
      takeSubmodules(options, repository, baseCommit),
    );
  }

  return {
    async snapshot(request) {
      const { baseCommit, parents, filter } = request;
      const [merged, extra, parts] = await Promise.all([
        parents.length === 0 ? ok(baseCommit) : mergeParents(options.gitDir, baseCommit, parents),
        extraFiles(request),
        submodulesOf(request),
      ]);
      if (!merged.ok) return merged;
      const added = { extra: extra.files, submodules: parts.trees };
      const warnings = [...extra.warnings, ...parts.warnings];
      const base = await ensureBaseTree(context, baseCommit, filter, added);
      if (merged.value === baseCommit) return ok(toSnapshot(base, [base], warnings));
      const layer = await ensureParentLayer(context, base, merged.value, filter, added);
      return ok(toSnapshot(layer, [layer, base], warnings));
    },
  };
}

/** One promise per key; a failed one is forgotten. Without a key nothing is kept. */
function createMemo<T>(): (key: string | undefined, make: () => Promise<T>) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return (key, make) => {
    if (key === undefined) return make();
    const made = known.get(key) ?? make();
    known.set(key, made);
    made.catch(() => known.delete(key));
    return made;
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
