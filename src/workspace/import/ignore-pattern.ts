/**
 * One line of a `.gitignore`, compiled and matched.
 *
 * The lines come from a hostile tree, so a pattern may not cost more than its length times the path's: patterns are never turned
 * into regular expressions (a chain of double stars makes those backtrack for minutes). Both loops below remember one star only, the
 * last: for symbols that each match one position that is as good as full backtracking.
 * Bytes are latin1 characters, as git matches bytes.
 * LIMITATION: git lets `x**` before a slash cross directories where nothing but literal text comes before the stars, against its own manual; here
 * the manual is followed, and such a file is taken in.
 */

/** One byte position of a component: a star, or a test of the byte. */
type Token = "*" | ((byte: number) => boolean);
/** One component of the pattern: `**`, or tokens. */
type Segment = "**" | readonly Token[];

export interface IgnorePattern {
  readonly negated: boolean;
  readonly directoriesOnly: boolean;
  /** False: matched against the last component alone. */
  readonly anchored: boolean;
  readonly segments: readonly Segment[];
  /** Upper bound of the steps a match takes per byte of the path. */
  readonly weight: number;
}

const CLASSES: Readonly<Record<string, (byte: number) => boolean>> = {
  alpha: (b) => isUpper(b) || isLower(b),
  digit: (b) => isDigit(b),
  alnum: (b) => isUpper(b) || isLower(b) || isDigit(b),
  upper: (b) => isUpper(b),
  lower: (b) => isLower(b),
  space: (b) => b === 0x20 || (b >= 0x09 && b <= 0x0d),
  blank: (b) => b === 0x20 || b === 0x09,
  punct: (b) => b > 0x20 && b < 0x7f && !(isUpper(b) || isLower(b) || isDigit(b)),
  print: (b) => b >= 0x20 && b < 0x7f,
  graph: (b) => b > 0x20 && b < 0x7f,
  cntrl: (b) => b < 0x20 || b === 0x7f,
  xdigit: (b) => isDigit(b) || (b >= 0x41 && b <= 0x46) || (b >= 0x61 && b <= 0x66),
};

/** Compiles one line (latin1, without its line feed); null for blank lines, comments and patterns that cannot match. */
export function parseIgnorePattern(line: string): IgnorePattern | null {
  let text = stripTrailingSpaces(line.endsWith("\r") ? line.slice(0, -1) : line);
  if (text === "" || text.startsWith("#")) return null;
  const negated = text.startsWith("!");
  if (negated) text = text.slice(1);
  const directoriesOnly = text.endsWith("/");
  if (directoriesOnly) text = text.slice(0, -1);
  const anchored = text.includes("/");
  if (text.startsWith("/")) text = text.slice(1);
  if (text === "") return null;
  const segments: Segment[] = [];
  const parts = text.split("/");
  for (const [index, part] of parts.entries()) {
    if (anchored && /^\*{2,}$/.test(part)) {
      if (segments.at(-1) !== "**") segments.push("**");
      // A trailing `/**` is what lies inside, not the directory itself.
      if (index === parts.length - 1 && index > 0) segments.push(["*"]);
      continue;
    }
    const tokens = parseSegment(part, index === parts.length - 1);
    if (tokens === null) return null;
    segments.push(tokens);
  }
  const tokens = segments.reduce((sum, segment) => sum + segment.length, 0);
  const weight = text.includes("*") ? tokens : 1;
  return { negated, directoriesOnly, anchored, segments, weight };
}

/** Whether a pattern names the path (latin1, relative to the directory of its `.gitignore`). */
export function matchesIgnorePattern(
  pattern: IgnorePattern,
  components: readonly string[],
  isDirectory: boolean,
): boolean {
  if (pattern.directoriesOnly && !isDirectory) return false;
  if (pattern.anchored) return matchSegments(pattern.segments, components);
  const [only] = pattern.segments;
  const name = components.at(-1);
  return only !== undefined && only !== "**" && name !== undefined && matchTokens(only, name);
}

function matchSegments(segments: readonly Segment[], components: readonly string[]): boolean {
  let s = 0;
  let starSegment = -1;
  let starComponent = 0;
  let c = 0;
  while (c < components.length) {
    const segment = segments[s];
    if (segment === "**") {
      starSegment = s;
      starComponent = c;
      s += 1;
    } else if (segment !== undefined && matchTokens(segment, components[c] ?? "")) {
      s += 1;
      c += 1;
    } else if (starSegment !== -1) {
      starComponent += 1;
      c = starComponent;
      s = starSegment + 1;
    } else {
      return false;
    }
  }
  while (segments[s] === "**") s += 1;
  return s === segments.length;
}

function matchTokens(tokens: readonly Token[], name: string): boolean {
  let t = 0;
  let n = 0;
  let starToken = -1;
  let starName = 0;
  while (n < name.length) {
    const token = tokens[t];
    if (token === "*") {
      starToken = t;
      starName = n;
      t += 1;
    } else if (token?.(name.charCodeAt(n))) {
      t += 1;
      n += 1;
    } else if (starToken !== -1) {
      starName += 1;
      n = starName;
      t = starToken + 1;
    } else {
      return false;
    }
  }
  while (tokens[t] === "*") t += 1;
  return t === tokens.length;
}

function parseSegment(text: string, isLast: boolean): Token[] | null {
  const tokens: Token[] = [];
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i];
    if (char === "*") {
      if (tokens.at(-1) !== "*") tokens.push("*");
    } else if (char === "?") {
      tokens.push(() => true);
    } else if (char === "[") {
      const bracket = parseBracket(text, i);
      if (bracket === null) return null;
      tokens.push(bracket.test);
      i = bracket.end;
    } else if (char === "\\") {
      i += 1;
      if (i < text.length) tokens.push(literal(text.charCodeAt(i)));
      else if (isLast) return null; // A lone backslash at the end: git takes the pattern for broken.
    } else {
      tokens.push(literal(text.charCodeAt(i)));
    }
  }
  return tokens;
}

/** Reads `[...]` at `start`; null where it is not closed or names an unknown class. */
function parseBracket(text: string, start: number): { test: (byte: number) => boolean; end: number } | null {
  let i = start + 1;
  const negated = text[i] === "!" || text[i] === "^";
  if (negated) i += 1;
  const tests: Array<(byte: number) => boolean> = [];
  let previous = -1;
  // A `]` that comes first is a member, not the end.
  while (text[i] !== "]" || tests.length === 0) {
    if (i >= text.length) return null;
    if (text[i] === "[" && text[i + 1] === ":") {
      const close = text.indexOf(":]", i + 2);
      const test = close === -1 ? undefined : CLASSES[text.slice(i + 2, close)];
      if (test === undefined) return null;
      tests.push(test);
      previous = -1;
      i = close + 2;
    } else if (text[i] === "-" && previous !== -1 && text[i + 1] !== "]" && i + 1 < text.length) {
      const end = text[i + 1] === "\\" ? i + 2 : i + 1;
      if (end >= text.length) return null;
      const [low, high] = [previous, text.charCodeAt(end)];
      tests.push((byte) => byte >= low && byte <= high);
      previous = -1;
      i = end + 1;
    } else {
      if (text[i] === "\\") i += 1;
      if (i >= text.length) return null;
      previous = text.charCodeAt(i);
      tests.push(literal(previous));
      i += 1;
    }
  }
  return { test: (byte) => tests.some((test) => test(byte)) !== negated, end: i };
}

function stripTrailingSpaces(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === " " && !isEscaped(line, end - 1)) end -= 1;
  return line.slice(0, end);
}

function isEscaped(line: string, index: number): boolean {
  let backslashes = 0;
  while (index - 1 - backslashes >= 0 && line[index - 1 - backslashes] === "\\") backslashes += 1;
  return backslashes % 2 === 1;
}

function literal(code: number): (byte: number) => boolean {
  return (byte) => byte === code;
}
function isUpper(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}
function isLower(byte: number): boolean {
  return byte >= 0x61 && byte <= 0x7a;
}
function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}
