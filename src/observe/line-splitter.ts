import { StringDecoder } from "node:string_decoder";
import { sanitizeForTerminal } from "../util/sanitize-text.ts";

/** Cuts a byte stream of one attempt into lines that can be shown. */
export interface LineSplitter {
  /** Whole lines that this chunk completed, sanitised. */
  push(chunk: string | Uint8Array): string[];
  /** What is left without a line end, if anything. */
  end(): string[];
  /** The newest line with something in it, finished or not: what a live view shows. */
  readonly last: string;
}

/** Bytes of an unfinished line that are kept; what follows up to the line end is dropped and marked. */
const MAX_LINE_CHARS = 8192;

/**
 * Opens a splitter. A carriage return ends a line too, so that a progress bar shows its newest state. Invalid UTF-8 becomes
 * U+FFFD; a character split over two chunks is put together again.
 */
export function createLineSplitter(options: { maxLineChars?: number } = {}): LineSplitter {
  const maxChars = options.maxLineChars ?? MAX_LINE_CHARS;
  const decoder = new StringDecoder("utf8");
  let partial = "";
  let overlong = false;
  let afterCarriageReturn = false;
  let last = "";

  const finish = (raw: string): string => {
    const line = sanitizeForTerminal(raw, { maxChars });
    if (line.trim() !== "") last = line;
    return line;
  };
  const keep = (text: string): void => {
    if (overlong) return;
    const room = maxChars - partial.length;
    if (text.length > room) overlong = true;
    partial += text.length > room ? text.slice(0, room) : text;
  };
  const take = (chunk: string): string[] => {
    // "\r" and "\n" are one line end also when they come in two chunks.
    const text = afterCarriageReturn && chunk.startsWith("\n") ? chunk.slice(1) : chunk;
    if (chunk !== "") afterCarriageReturn = chunk.endsWith("\r");
    const lines: string[] = [];
    let from = 0;
    for (const match of text.matchAll(/\r\n|\n|\r/g)) {
      keep(text.slice(from, match.index));
      from = match.index + match[0].length;
      lines.push(finish(overlong ? `${partial}…` : partial));
      partial = "";
      overlong = false;
    }
    keep(text.slice(from));
    return lines;
  };

  return {
    push: (chunk) => take(typeof chunk === "string" ? chunk : decoder.write(Buffer.from(chunk))),
    end() {
      const lines = take(decoder.end());
      if (partial !== "") lines.push(finish(partial));
      partial = "";
      return lines;
    },
    get last() {
      if (partial === "") return last;
      const unfinished = sanitizeForTerminal(partial, { maxChars });
      return unfinished.trim() === "" ? last : unfinished;
    },
  };
}
