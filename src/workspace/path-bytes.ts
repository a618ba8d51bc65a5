/**
 * Path names as bytes: how they are written for people, for git, and which of them must never enter a tree.
 *
 * A name from a container is any bytes but NUL and `/`. It is kept byte-exact; text is only for showing.
 * Keys of maps are the bytes as latin1, which loses nothing and compares like the bytes.
 */

const SLASH = 0x2f;
const PRINTABLE = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
/** NTFS drops trailing dots and spaces, knows `git~1` as a short name of `.git`, and takes `\` for a separator and `:` for a stream. */
const NTFS_GIT = /^(?:\.git|git~1)[ .]*(?::|$)/i;
const NTFS_GITMODULES = /^(?:\.gitmodules|gitmod~[1-4]|gi7eba~[1-9])[ .]*(?::|$)/i;
/** Code points that HFS+ leaves out when it compares names. */
const HFS_IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Bytes as a map key: one character a byte. */
export function pathKey(path: Buffer): string {
  return path.toString("latin1");
}

/** The bytes behind a key made by `pathKey`. */
export function pathOfKey(key: string): Buffer {
  return Buffer.from(key, "latin1");
}

/** Appends a name to a directory path; the empty path is the top. */
export function joinPath(directory: Buffer, name: Buffer): Buffer {
  return directory.length === 0 ? name : Buffer.concat([directory, Buffer.from([SLASH]), name]);
}

/** The path's text where it is valid UTF-8, else null. */
export function utf8Path(path: Buffer): string | null {
  try {
    return strictUtf8.decode(path);
  } catch {
    return null; // Not UTF-8: a legal name all the same.
  }
}

/** A path as git quotes it: always in double quotes, every byte out of the ordinary in octal. */
export function quotePath(path: Buffer): string {
  const key = pathKey(path);
  if (PRINTABLE.test(key)) return `"${key}"`;
  let quoted = '"';
  for (const byte of path) {
    const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c;
    quoted += plain ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, "0")}`;
  }
  return `${quoted}"`;
}

/** The text of `FileChange.path`: UTF-8 as it is; quoted where it is not UTF-8 or would be taken for a quoted one. */
export function formatPath(path: Buffer): string {
  const text = utf8Path(path);
  return text === null || text.startsWith('"') ? quotePath(path) : text;
}

/** The bytes behind a text made by `formatPath`. */
export function parsePath(text: string): Buffer {
  if (!text.startsWith('"')) return Buffer.from(text, "utf8");
  const bytes = text
    .slice(1, -1)
    .replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  return Buffer.from(bytes, "latin1");
}

/** A path for messages: control characters and invalid bytes escaped, long ones cut. */
export function showPath(path: Buffer, maxBytes = 300): string {
  const cut = path.length > maxBytes;
  const text = utf8Path(cut ? path.subarray(0, maxBytes) : path);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const safe = text !== null && !/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]|^"/.test(text);
  const shown = safe ? text : quotePath(cut ? path.subarray(0, maxBytes) : path);
  return cut ? `${shown}… (${path.length} bytes)` : shown;
}

/** The components of a path. */
export function splitPath(path: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  let start = 0;
  for (let end = path.indexOf(SLASH); end !== -1; end = path.indexOf(SLASH, start)) {
    parts.push(path.subarray(start, end));
    start = end + 1;
  }
  parts.push(path.subarray(start));
  return parts;
}

/** Whether git, on any system, could take this component for its own directory: it MUST NOT enter a tree. */
export function isGitLike(component: Buffer): boolean {
  return resembles(component, NTFS_GIT, ".git");
}

/** Whether git could take this component for `.gitmodules` (it refuses a symbolic link of that name). */
export function isGitmodulesLike(component: Buffer): boolean {
  return resembles(component, NTFS_GITMODULES, ".gitmodules");
}

function resembles(component: Buffer, ntfs: RegExp, name: string): boolean {
  const key = pathKey(component);
  if (key.split("\\").some((part) => ntfs.test(part))) return true;
  if (key.length === name.length) return false; // HFS+ only matters where something is left out.
  return component.toString("utf8").replace(HFS_IGNORED, "").toLowerCase() === name;
}

/**
 * Why a symbolic link at `path` may not go into a tree, or null.
 *
 * Only `../` steps followed by plain names are taken: with that form each step up starts at a real directory, so that no chain of
 * links that are inside one by one leads out of the repository.
 */
export function symlinkObjection(path: Buffer, target: Buffer): string | null {
  if (target[0] === SLASH) return "its target is absolute";
  let depth = splitPath(path).length - 1;
  let named = false;
  for (const part of splitPath(target)) {
    const text = pathKey(part);
    if (text === "" || text === ".") continue;
    if (text !== "..") {
      named = true;
      if (isGitLike(part)) return "its target lies in a git directory";
      continue;
    }
    if (named) return "its target goes up again after a name, which another link could lead outside";
    depth -= 1;
    if (depth < 0) return "its target lies outside the repository";
  }
  return null;
}
