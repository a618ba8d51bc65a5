/**
 * Reads trees and blobs. Paths are bytes to git; here they travel as strings of one character per byte (latin1), which loses
 * nothing and compares as git sorts. `utf8Path` gives the text a person means, `Buffer.from(path, "latin1")` the bytes for fs.
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

/** The text of a path, or null where its bytes are not UTF-8. */
export function utf8Path(path: string): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(path, "latin1"));
  } catch {
    // Not UTF-8: git allows any byte but NUL.
    return null;
  }
}

/** A path for a message: UTF-8 where it is, with control characters and odd bytes escaped. */
export function displayPath(path: string): string {
  const text = utf8Path(path);
  const escaped = (character: string) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not reach a terminal
  if (text !== null) return text.replace(/[\x00-\x1f\x7f-\x9f]/g, escaped);
  return path.replace(/[^\x20-\x7e]/g, escaped);
}

async function check(run: GitRunner, args: readonly string[], options?: GitOptions): Promise<Buffer> {
  const output = await run(args, options);
  if (output.exitCode !== 0) throw gitFailed(args, output, null);
  return output.stdout;
}
