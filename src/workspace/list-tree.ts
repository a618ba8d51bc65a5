/**
 * Reads trees and blobs. Paths are bytes to git; here they travel as keys of one character per byte (path-bytes.ts), which lose nothing and
 * compare as git sorts.
 */
import { type GitOptions, type GitOutput, gitFailed, runGit } from "./git.ts";

export interface TreeEntry {
  readonly mode: string;
  readonly type: "blob" | "tree" | "commit";
  readonly oid: string;
  /** Bytes of a blob, null for what has no size. */
  readonly size: number | null;
  /** One character per byte. */
  readonly path: string;
}

/** A git bound to one repository. */
export type GitRunner = (args: readonly string[], options?: GitOptions) => Promise<GitOutput>;

/** Binds `runGit` to a git directory of our own. */
export function gitRunner(gitDir: string): GitRunner {
  return (args, options) => runGit(gitDir, args, options);
}

/** Every file (and gitlink) of a commit or tree, in git's order. */
export async function listTree(run: GitRunner, treeish: string): Promise<TreeEntry[]> {
  const output = await check(run, ["ls-tree", "-r", "-z", "-l", "--full-tree", treeish]);
  return splitNul(output).map((record) => {
    const tab = record.indexOf("\t");
    const [mode = "", type = "", oid = "", size = ""] = record.slice(0, tab).split(/ +/);
    return {
      mode,
      type: type as TreeEntry["type"],
      oid,
      size: size === "-" ? null : Number(size),
      path: record.slice(tab + 1),
    };
  });
}

/** Contents of blobs, in the order asked. */
export async function readBlobs(run: GitRunner, oids: readonly string[]): Promise<Buffer[]> {
  if (oids.length === 0) return [];
  const output = await check(run, ["cat-file", "--batch=%(objectsize)"], { input: `${oids.join("\n")}\n` });
  const contents: Buffer[] = [];
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf(0x0a, at);
    const size = Number(output.toString("latin1", at, end));
    // A missing object is answered with words in place of a size; there is nothing to read then.
    const length = Number.isInteger(size) ? size : 0;
    contents.push(output.subarray(end + 1, end + 1 + length));
    at = Number.isInteger(size) ? end + 1 + length + 1 : end + 1;
  }
  return contents;
}

/** Splits NUL-ended records, one character per byte. */
export function splitNul(bytes: Buffer): string[] {
  const records = bytes.toString("latin1").split("\0");
  records.pop();
  return records;
}

async function check(run: GitRunner, args: readonly string[], options?: GitOptions): Promise<Buffer> {
  const output = await run(args, options);
  if (output.exitCode !== 0) throw gitFailed(args, output, null);
  return output.stdout;
}
