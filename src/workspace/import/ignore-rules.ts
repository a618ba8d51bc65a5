import { type IgnorePattern, matchesIgnorePattern, parseIgnorePattern } from "./ignore-pattern.ts";

/** Ignore rules of a tree, told directory by directory. Paths are latin1 keys, `""` is the top. */
export interface IgnoreRules {
  /**
   * Adds the `.gitignore` of a directory. MUST be told before anything below that directory is asked for, since answers
   * for directories are kept.
   */
  addFile(directory: string, content: Buffer): void;
  /** Whether the path is ignored: a rule names it, or a directory above it is ignored (which no rule below can undo). */
  isIgnored(path: string, isDirectory: boolean): boolean;
}

/** A larger `.gitignore` is not read: its files then count as new ones, which loses nothing. */
export const MAX_IGNORE_FILE_BYTES = 256 * 1024;
/** Patterns over all files of one tree; those past it are left out. */
const MAX_PATTERNS = 5000;
const MAX_PATTERN_CHARS = 1024;
/** Steps spent on matching over one tree (some seconds); past it no rule applies any more. Enough for 100 patterns on 100,000 files. */
const MAX_WORK = 30_000_000;

/** Makes the rules, with `exclude` (the content of `info/exclude`) as the weakest. */
export function createIgnoreRules(exclude = ""): IgnoreRules {
  const byDirectory = new Map<string, readonly IgnorePattern[]>();
  const directories = new Map<string, boolean>([["", false]]);
  let room = MAX_PATTERNS;
  let work = MAX_WORK;
  const excluded = parse(Buffer.from(exclude, "utf8"));

  function parse(content: Buffer): IgnorePattern[] {
    const text = content.toString("latin1");
    const patterns: IgnorePattern[] = [];
    // git skips a UTF-8 byte order mark.
    for (const line of (text.startsWith("\xef\xbb\xbf") ? text.slice(3) : text).split("\n")) {
      if (line.length > MAX_PATTERN_CHARS || room <= 0) continue;
      const pattern = parseIgnorePattern(line);
      if (pattern === null) continue;
      patterns.push(pattern);
      room -= 1;
    }
    return patterns;
  }

  function decide(path: string, isDirectory: boolean): boolean {
    const components = path.split("/");
    // The nearest file first, in each the last line first.
    for (let depth = components.length - 1; depth >= 0; depth -= 1) {
      const patterns = byDirectory.get(components.slice(0, depth).join("/"));
      const verdict = patterns && lastMatch(patterns, components.slice(depth), isDirectory);
      if (verdict !== undefined) return verdict;
    }
    return lastMatch(excluded, components, isDirectory) ?? false;
  }

  function isDirectoryIgnored(path: string): boolean {
    const known = directories.get(path);
    if (known !== undefined) return known;
    // Outermost first and without recursion: the depth of a path is in its author's hands.
    let ignored = false;
    for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) {
      const above = path.slice(0, end);
      const answer: boolean = directories.get(above) ?? (ignored || decide(above, true));
      directories.set(above, answer);
      ignored = answer;
    }
    const answer = ignored || decide(path, true);
    directories.set(path, answer);
    return answer;
  }

  function lastMatch(
    patterns: readonly IgnorePattern[],
    components: readonly string[],
    isDirectory: boolean,
  ): boolean | undefined {
    const bytes = components.reduce((sum, part) => sum + part.length + 1, 0);
    for (let index = patterns.length - 1; index >= 0 && work > 0; index -= 1) {
      const pattern = patterns[index];
      if (pattern === undefined) continue;
      work -= 1 + (pattern.weight * bytes) / 256;
      if (matchesIgnorePattern(pattern, components, isDirectory)) return !pattern.negated;
    }
    return undefined;
  }

  return {
    addFile(directory, content) {
      const patterns = parse(content);
      if (patterns.length > 0) byDirectory.set(directory, patterns);
    },
    isIgnored(path, isDirectory) {
      if (isDirectory) return isDirectoryIgnored(path);
      const slash = path.lastIndexOf("/");
      return (slash !== -1 && isDirectoryIgnored(path.slice(0, slash))) || decide(path, false);
    },
  };
}
