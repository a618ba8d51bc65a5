/** Longest line kept; a program that never ends its line must not fill the memory. */
const MAX_LINE_CHARS = 500;

/** Keeps the last `maxLines` lines of a program's output for an error message. */
export function boundedLines(maxLines: number): {
  push: (bytes: Buffer | string) => void;
  tail: () => readonly string[];
} {
  const lines: string[] = [];
  let open = "";
  const keep = (line: string) => {
    if (line.trim() === "") return;
    lines.push(line.slice(0, MAX_LINE_CHARS));
    if (lines.length > maxLines) lines.shift();
  };
  return {
    push(bytes) {
      const parts = (open + bytes.toString()).split(/\r?\n|\r/);
      open = (parts.pop() ?? "").slice(0, MAX_LINE_CHARS);
      for (const part of parts) keep(part);
    },
    tail() {
      keep(open);
      open = "";
      return [...lines];
    },
  };
}
