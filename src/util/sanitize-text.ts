/**
 * Makes hostile text fit for a terminal. Whatever comes out of a container (output, file names, messages) can hold escape
 * sequences that move the cursor, retitle the window or write to the clipboard, and bidi marks that show a line in another order
 * than it reads. Nothing of that kind is left after this; what was printable stays as it was.
 */

/** Longest piece of one line that is ever shown; the width of the terminal cuts it further. */
const DEFAULT_MAX_CHARS = 4096;

/*
 * Each branch stops at the next introducer, so a text of nothing but openers is still read once: linear time.
 * CSI; OSC, DCS, SOS, PM and APC with their string; other two- and three-byte escapes. 7-bit and 8-bit (C1) forms.
 */
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90-\x9f\n]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]/g;

/** C0 without tab and newline, DEL and C1. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/*
 * Marks that reorder or hide: bidi embeddings, overrides and isolates, zero-width characters but the joiners that scripts and emoji need,
 * line and paragraph separators, the invisible tag block, interlinear annotation.
 */
const INVISIBLE =
  /[\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

export interface SanitizeOptions {
  /** `true` keeps newlines and tabs (a block of text); the default makes one line, white space becoming a space. */
  readonly multiline?: boolean;
  /** Characters kept; the rest is replaced by `…`. */
  readonly maxChars?: number;
}

/** Text without control characters, escape sequences, bidi marks and lone surrogates. */
export function sanitizeForTerminal(text: string, options: SanitizeOptions = {}): string {
  const multiline = options.multiline ?? false;
  const maxChars = options.maxChars ?? (multiline ? Number.POSITIVE_INFINITY : DEFAULT_MAX_CHARS);
  // Cut first, generously, so that the work is bounded by what can be shown and not by what was sent.
  const bounded = text.length > maxChars * 4 ? text.slice(0, maxChars * 4) : text;
  const clean = (multiline ? bounded : bounded.replace(/[\t\r\n]+/g, " "))
    .replace(ESCAPES, "")
    .replace(CONTROLS, "")
    .replace(INVISIBLE, "")
    .toWellFormed();
  if (clean.length <= maxChars) return clean.length === 0 || bounded === text ? clean : `${clean}…`;
  return `${clean.slice(0, maxChars).toWellFormed()}…`;
}

/**
 * A file name as it can be shown and told apart: what would be stripped is written as an escape, so that two names that differ
 * only in it do not look the same.
 */
export function quotePath(path: string): string {
  const escaped = path
    // biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
    .replace(/[\x00-\x1f\x7f-\x9f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`)
    .replace(INVISIBLE, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`)
    .toWellFormed();
  return escaped === path ? path : `"${escaped}"`;
}
