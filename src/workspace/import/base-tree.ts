import { gitBytes } from "../git.ts";
import { pathKey } from "../path-bytes.ts";
import type { FastImport, TreeEntry } from "./fast-import.ts";

/** What the snapshot's commit holds, asked path by path (latin1 keys). */
export interface BaseTree {
  lookup(path: string): Promise<TreeEntry | null>;
}

/** Each question to fast-import unpacks the trees on its path anew; past this many the whole list is cheaper. */
const MAX_QUESTIONS = 200;

/** Answers through the import's own process at first, and from one listing of the commit when there are many questions. */
export function createBaseTree(gitDir: string, commit: string, session: FastImport): BaseTree {
  let questions = 0;
  let listing: Promise<Map<string, TreeEntry>> | undefined;
  return {
    async lookup(path) {
      questions += 1;
      if (questions <= MAX_QUESTIONS) return session.lookup(commit, path);
      listing ??= listTree(gitDir, commit, true);
      return (await listing).get(path) ?? null;
    },
  };
}

/** Every entry of a commit, by latin1 path; directories too where `withTrees`. */
export async function listTree(
  gitDir: string,
  commit: string,
  withTrees: boolean,
): Promise<Map<string, TreeEntry>> {
  const flags = withTrees ? ["-r", "-t"] : ["-r"];
  const output = await gitBytes(gitDir, ["ls-tree", ...flags, "-z", "--full-tree", commit]);
  const entries = new Map<string, TreeEntry>();
  for (const record of pathKey(output).split("\0")) {
    const tab = record.indexOf("\t");
    const [mode, , oid] = record.slice(0, tab).split(" ");
    if (tab !== -1 && mode && oid) entries.set(record.slice(tab + 1), { mode, oid });
  }
  return entries;
}
