/** What a person should know of a repository before a run starts from one of its commits. Read only, nothing is run. */

import { inRepository, type RepositoryLocation } from "./in-repository.ts";
import { describeLfs } from "./lfs-pointers.ts";
import { type GitRunner, listTree, readBlobs, type TreeEntry } from "./list-tree.ts";
import { pathOfKey, showPath } from "./path-bytes.ts";
import { findSubmodules, whySubmoduleIsEmpty } from "./submodules.ts";

const MAX_NAMED = 3;

/** Lists what of `commit` cannot go into a snapshot as the person has it in their work tree. */
export async function readWarnings(
  location: RepositoryLocation,
  commit: string,
  config: ReadonlyMap<string, string>,
): Promise<string[]> {
  const run: GitRunner = (args, options) => inRepository(location.top, args, options);
  const entries = await listTree(run, commit);
  const warnings = await submoduleWarnings(location, run, commit, entries);
  const attributes = entries.filter((entry) => /(?:^|\/)\.gitattributes$/.test(entry.path));
  const contents = await readBlobs(
    run,
    attributes.map((entry) => entry.oid),
  );
  if (contents.some((content) => /\bfilter=lfs\b/.test(content.toString("latin1")))) {
    warnings.push(...(await describeLfs(run, entries)));
  }
  if (config.get("core.sparsecheckout") === "true") {
    warnings.push("The work tree is a sparse checkout; snapshots hold all files of the commit.");
  }
  if (config.has("extensions.partialclone")) {
    warnings.push(
      "The repository is a partial clone; objects it has not fetched yet cannot go into a snapshot.",
    );
  }
  return warnings;
}

async function submoduleWarnings(
  location: RepositoryLocation,
  run: GitRunner,
  commit: string,
  entries: readonly TreeEntry[],
): Promise<string[]> {
  if (!entries.some((entry) => entry.type === "commit")) return [];
  const missing = (await findSubmodules(location, run, commit, entries)).filter(
    (submodule) => submodule.gitDir === null,
  );
  const warnings = missing.slice(0, MAX_NAMED).map(whySubmoduleIsEmpty);
  if (missing.length > MAX_NAMED) {
    const rest = missing.slice(MAX_NAMED).map(({ path }) => showPath(pathOfKey(path)));
    warnings.push(`${rest.length} more submodules stay empty in snapshots: ${rest.slice(0, 10).join(", ")}`);
  }
  return warnings;
}
