import type { FileChange, FileMode } from "../../model/patch.ts";
import { gitBytes } from "../git.ts";
import { formatPath, pathKey, pathOfKey } from "../path-bytes.ts";

/** One raw difference between two trees. `path` is a latin1 key; mode 000000 stands for "not there". */
export interface RawChange {
  readonly path: string;
  readonly oldMode: string;
  readonly newMode: string;
  readonly oldOid: string;
  readonly newOid: string;
}

const ABSENT = "000000";
const GITLINK = "160000";
/** Plumbing only: no textconv, no external program, no rename guessing; huge blobs are not compared line by line. */
const DIFF_TREE = [
  "-c",
  "core.bigFileThreshold=16m",
  "diff-tree",
  "-r",
  "-z",
  "--no-renames",
  "--no-ext-diff",
];

/** What differs between two trees, without line counts. */
export async function diffTrees(gitDir: string, before: string, after: string): Promise<RawChange[]> {
  return parse(await gitBytes(gitDir, [...DIFF_TREE, "--raw", "--no-abbrev", before, after])).changes;
}

/** What differs between two trees, as a patch lists it, and the raw changes. One git process. */
export async function listFileChanges(
  gitDir: string,
  before: string,
  after: string,
): Promise<{ files: FileChange[]; raw: RawChange[] }> {
  const args = [...DIFF_TREE, "--no-textconv", "--raw", "--numstat", "--no-abbrev", before, after];
  const { changes, lines } = parse(await gitBytes(gitDir, args));
  const files = changes.map((change) => {
    const counts = lines.get(change.path);
    return {
      path: formatPath(pathOfKey(change.path)),
      kind: kindOf(change),
      mode: change.newMode === ABSENT ? null : fileMode(change.newMode),
      insertions: counts?.insertions ?? null,
      deletions: counts?.deletions ?? null,
    };
  });
  return { files, raw: changes };
}

/** Whether a submodule is on either side of the change. */
export function touchesSubmodule(change: RawChange): boolean {
  return change.oldMode === GITLINK || change.newMode === GITLINK;
}

interface LineCounts {
  readonly insertions: number | null;
  readonly deletions: number | null;
}

/** Reads `--raw` records (`:old new oid oid X NUL path NUL`) and `--numstat` records (`n TAB n TAB path NUL`). */
function parse(output: Buffer): { changes: RawChange[]; lines: Map<string, LineCounts> } {
  const fields = pathKey(output).split("\0");
  const changes: RawChange[] = [];
  const lines = new Map<string, LineCounts>();
  for (let index = 0; index < fields.length; index += 1) {
    const field = fields[index] ?? "";
    const raw = /^:([0-7]{6}) ([0-7]{6}) ([0-9a-f]+) ([0-9a-f]+) [A-Z]$/.exec(field);
    if (raw) {
      index += 1;
      const [, oldMode = "", newMode = "", oldOid = "", newOid = ""] = raw;
      changes.push({ path: fields[index] ?? "", oldMode, newMode, oldOid, newOid });
      continue;
    }
    const counts = /^(-|\d+)\t(-|\d+)\t(.*)$/s.exec(field);
    if (counts) lines.set(counts[3] ?? "", { insertions: toCount(counts[1]), deletions: toCount(counts[2]) });
  }
  return { changes, lines };
}

function toCount(text: string | undefined): number | null {
  return text === undefined || text === "-" ? null : Number(text);
}

function kindOf(change: RawChange): FileChange["kind"] {
  if (change.oldMode === ABSENT) return "added";
  if (change.newMode === ABSENT) return "deleted";
  if (change.oldMode.slice(0, 3) !== change.newMode.slice(0, 3)) return "type-changed";
  return change.oldOid === change.newOid ? "mode-changed" : "modified";
}

function fileMode(mode: string): FileMode {
  return mode === "100755" || mode === "120000" ? mode : "100644";
}
