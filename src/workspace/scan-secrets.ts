/**
 * Looks for secrets that a patch brings into the repository (row P14). Nothing is changed by it: what to do is for people.
 *
 * Theory of operation. The new content of each changed file goes through the finder as git streams it, all of one `git cat-file`;
 * git's own diff is not asked, since one NUL byte makes it call a file binary and leave its lines out. Only where something was
 * found the old content is read too, and what stood there already is no news. Cost follows the changed files, up to a budget.
 */
import type { Patch, PatchSecret } from "../model/patch.ts";
import {
  type Certain,
  compileSecrets,
  createSecretFinder,
  type SecretPatterns,
  type SecretSpan,
} from "../policy/secret-finder.ts";
import { diffTrees, type RawChange } from "./import/file-changes.ts";
import { formatPath, pathOfKey } from "./path-bytes.ts";
import { type BlobSink, readBlobs } from "./read-blobs.ts";

export interface ScanLimits {
  /** What is looked through of one file, and of all together. */
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
  /** Findings that are told. */
  readonly maxFindings: number;
}

const DEFAULT_LIMITS: ScanLimits = {
  maxFileBytes: 64 * 1024 ** 2,
  maxTotalBytes: 256 * 1024 ** 2,
  maxFindings: 100,
};
/** The rule of what was not looked through. */
export const NOT_SCANNED = "not-scanned";
/** Larger files are not compared with what they were: everything found in them counts as new. */
const MAX_COMPARED_BYTES = 16 * 1024 ** 2;
const GITLINK = "160000";
const ABSENT = /^0+$/;

interface Finding {
  readonly change: RawChange;
  readonly rule: string;
  readonly line: number | null;
  /** The secret itself, to look for it in the old content; never leaves this file. */
  readonly bytes: Buffer | null;
}

/** What of the patch looks like a secret: names first, then contents, in the order of its files. */
export async function findPatchSecrets(
  gitDir: string,
  patch: Pick<Patch, "parent" | "commit">,
  secrets: readonly string[],
  limits: Partial<ScanLimits> = {},
): Promise<PatchSecret[]> {
  const patterns = compileSecrets(secrets);
  const bounds = { ...DEFAULT_LIMITS, ...limits };
  const all = await diffTrees(gitDir, patch.parent, patch.commit);
  const changes = all.filter((change) => !ABSENT.test(change.newOid) && change.newMode !== GITLINK);
  const found: Finding[] = changes
    .filter((change) => ABSENT.test(change.oldOid))
    .flatMap((change) => findInPath(change, patterns));
  const changed = changes.filter((change) => change.newOid !== change.oldOid);
  let budget = bounds.maxTotalBytes;
  const oids = changed.map((change) => change.newOid);
  await readBlobs(gitDir, oids, (index, size) => {
    const change = changed[index] as RawChange;
    const scanned = found.length > bounds.maxFindings ? 0 : Math.min(size, bounds.maxFileBytes, budget);
    budget -= scanned;
    return scanBlob(change, size, scanned, patterns, (finding) => found.push(finding));
  });
  const fresh = await dropKnown(gitDir, found);
  return fresh
    .slice(0, bounds.maxFindings)
    .map(({ change, rule, line }) => ({ path: formatPath(pathOfKey(change.path)), rule, line }));
}

/** A name can hold a secret as well as a line can. */
function findInPath(change: RawChange, patterns: SecretPatterns): Finding[] {
  const rules = new Set<string>();
  const finder = createSecretFinder(patterns, ({ rule }) => rules.add(rule));
  finder.push(pathOfKey(change.path));
  finder.end();
  return [...rules].map((rule) => ({ change, rule, line: null, bytes: null }));
}

/** Looks through the first `scanned` bytes; a file that has more is told as not scanned. */
function scanBlob(
  change: RawChange,
  size: number,
  scanned: number,
  patterns: SecretPatterns,
  tell: (finding: Finding) => void,
): BlobSink {
  const isCompared = !ABSENT.test(change.oldOid) && scanned === size && size <= MAX_COMPARED_BYTES;
  const kept: Buffer[] = [];
  const spans: Array<{ span: SecretSpan; line: number }> = [];
  let waiting: SecretSpan[] = [];
  let line = 1;
  let left = scanned;
  const finder = createSecretFinder(patterns, (span) => waiting.push(span));
  /** Gives each found secret its line, counting on from the last. */
  const count = ({ bytes, from, until }: Certain): void => {
    let at = from;
    const countTo = (end: number): void => {
      for (let next = bytes.indexOf(0x0a, at - from); next !== -1 && next < end - from; ) {
        line += 1;
        next = bytes.indexOf(0x0a, next + 1);
      }
      at = end;
    };
    waiting.sort((a, b) => a.start - b.start);
    const certain = waiting.filter((span) => span.start < until);
    waiting = waiting.filter((span) => span.start >= until);
    for (const span of certain) {
      if (span.start > at) countTo(span.start);
      spans.push({ span, line });
    }
    countTo(until);
  };
  return {
    push(chunk) {
      const piece = chunk.subarray(0, left);
      left -= piece.length;
      if (piece.length === 0) return;
      if (isCompared) kept.push(piece);
      count(finder.push(piece));
    },
    end() {
      count(finder.end());
      const content = Buffer.concat(kept);
      for (const { span, line: spanLine } of spans) {
        const bytes = isCompared ? Buffer.from(content.subarray(span.start, span.end)) : null;
        tell({ change, rule: span.rule, line: spanLine, bytes });
      }
      if (scanned < size) tell({ change, rule: NOT_SCANNED, line: null, bytes: null });
    },
  };
}

/** Leaves out what the file held before the attempt. */
async function dropKnown(gitDir: string, found: readonly Finding[]): Promise<Finding[]> {
  const oids = [...new Set(found.flatMap(({ bytes, change }) => (bytes === null ? [] : [change.oldOid])))];
  const known = new Set<Finding>();
  await readBlobs(gitDir, oids, (index, size) => {
    const chunks: Buffer[] = [];
    return {
      push: (chunk) => size <= MAX_COMPARED_BYTES && chunks.push(chunk),
      end() {
        const old = Buffer.concat(chunks);
        for (const finding of found) {
          const isHere = finding.change.oldOid === oids[index] && finding.bytes !== null;
          if (isHere && finding.bytes !== null && old.includes(finding.bytes)) known.add(finding);
        }
      },
    };
  });
  return found.filter((finding) => !known.has(finding));
}
