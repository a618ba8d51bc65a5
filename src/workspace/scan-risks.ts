/** Holds a patch against the risk list of `policy/risks.ts` and the task's `protect` patterns (row A19). Changes nothing. */
import ignore from "ignore";
import type { Patch, PatchRisk } from "../model/patch.ts";
import { PROTECTED_RULE, RISK_RULES, type RiskContent, type RiskRule } from "../policy/risks.ts";
import { diffTrees, type RawChange } from "./import/file-changes.ts";
import { formatPath, pathOfKey } from "./path-bytes.ts";
import { readBlobs } from "./read-blobs.ts";

/** Paths that are told of one rule; the rest is counted. */
const MAX_PATHS = 50;
/** Larger content is not read, which counts as a change of whatever the rule looks for. */
const MAX_CONTENT_BYTES = 1024 ** 2;
const MAX_CONTENTS = 200;
const NO_FILE = "000000";
const REGULAR = /^100/;

interface Candidate {
  readonly change: RawChange;
  readonly rule: RiskRule;
}

/** What of the patch is on the list, by rule in the order of the list, protected paths first. */
export async function findPatchRisks(
  gitDir: string,
  patch: Pick<Patch, "parent" | "commit">,
  protect: readonly string[],
): Promise<PatchRisk[]> {
  const found = new Map<string, { files: number; paths: string[] }>();
  const flag = (rule: string, change: RawChange): void => {
    const entry = found.get(rule) ?? { files: 0, paths: [] };
    found.set(rule, entry);
    entry.files += 1;
    if (entry.paths.length < MAX_PATHS) entry.paths.push(formatPath(pathOfKey(change.path)));
  };
  const isProtected = matchProtected(protect);
  const undecided: Candidate[] = [];
  for (const change of await diffTrees(gitDir, patch.parent, patch.commit)) {
    if (isProtected(change)) flag(PROTECTED_RULE, change);
    const facts = {
      path: pathOfKey(change.path).toString("utf8"),
      oldMode: change.oldMode === NO_FILE ? null : change.oldMode,
      newMode: change.newMode === NO_FILE ? null : change.newMode,
    };
    for (const rule of RISK_RULES) {
      const verdict = rule.test(facts);
      if (verdict === "by-content") undecided.push({ change, rule });
      else if (verdict) flag(rule.id, change);
    }
  }
  const contents = await readContents(gitDir, undecided);
  for (const { change, rule } of undecided) {
    const before = contentOf(contents, change.oldMode, change.oldOid);
    const after = contentOf(contents, change.newMode, change.newOid);
    if (rule.testContent?.(before, after) ?? true) flag(rule.id, change);
  }
  return [PROTECTED_RULE, ...RISK_RULES.map(({ id }) => id)].flatMap((rule) => {
    const entry = found.get(rule);
    return entry === undefined ? [] : [{ rule, ...entry }];
  });
}

/** Patterns are case-insensitive here: what is protected stays so under a name that some systems take for the same. */
function matchProtected(protect: readonly string[]): (change: RawChange) => boolean {
  if (protect.length === 0) return () => false;
  const patterns = ignore({ ignorecase: true, allowRelativePaths: true }).add([...protect]);
  return (change) => {
    const path = pathOfKey(change.path).toString("utf8");
    // A link or file in the place of a protected directory touches all that was in it.
    return patterns.ignores(path) || patterns.ignores(`${path}/`);
  };
}

async function readContents(
  gitDir: string,
  undecided: readonly Candidate[],
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Set<string>();
  for (const { change } of undecided) {
    if (wanted.size >= MAX_CONTENTS) break;
    if (REGULAR.test(change.oldMode)) wanted.add(change.oldOid);
    if (REGULAR.test(change.newMode)) wanted.add(change.newOid);
  }
  const oids = [...wanted];
  const contents = new Map<string, string>();
  await readBlobs(gitDir, oids, (index, size) => {
    const chunks: Buffer[] = [];
    const isRead = size <= MAX_CONTENT_BYTES;
    return {
      push: (chunk) => isRead && chunks.push(Buffer.from(chunk)),
      end: () => isRead && contents.set(oids[index] ?? "", Buffer.concat(chunks).toString("utf8")),
    };
  });
  return contents;
}

function contentOf(contents: ReadonlyMap<string, string>, mode: string, oid: string): RiskContent {
  if (mode === NO_FILE) return null;
  return contents.get(oid) ?? "unread";
}
