import { err, ok, type Result } from "./result.ts";

/** Why a text is not a list of words. `offset` counts UTF-16 units from 0. */
export type ShellWordsProblem =
  | { readonly kind: "unclosed-quote"; readonly quote: "'" | '"'; readonly offset: number }
  | { readonly kind: "trailing-backslash"; readonly offset: number }
  /** An unquoted `&`, `|`, `;`, `<` or `>`: whoever wrote it expects a shell, and there is none. */
  | { readonly kind: "operator"; readonly operator: string; readonly offset: number };

/**
 * Splits a command line into words by the quoting rules of a POSIX shell: '…' is literal, in "…" a backslash escapes
 * `" \ $` and a backquote, outside quotes it escapes anything. Nothing is expanded: `$HOME`, `*` and `~` stay as they are.
 */
export function splitShellWords(text: string): Result<readonly string[], ShellWordsProblem> {
  const words: string[] = [];
  let word: string | null = null;
  let index = 0;
  while (index < text.length) {
    const char = text.charAt(index);
    if (char === " " || char === "\t" || char === "\n" || char === "\r") {
      if (word !== null) words.push(word);
      word = null;
      index += 1;
    } else if (char === "'" || char === '"') {
      const quoted = readQuoted(text, index, char);
      if (!quoted.ok) return quoted;
      word = (word ?? "") + quoted.value.content;
      index = quoted.value.end;
    } else if (char === "\\") {
      if (index + 1 >= text.length) return err({ kind: "trailing-backslash", offset: index });
      const escaped = text.charAt(index + 1);
      // A backslash before a line end joins the lines.
      if (escaped !== "\n") word = (word ?? "") + escaped;
      index += 2;
    } else if ("&|;<>".includes(char)) {
      return err({ kind: "operator", operator: char, offset: index });
    } else {
      word = (word ?? "") + char;
      index += 1;
    }
  }
  if (word !== null) words.push(word);
  return ok(words);
}

function readQuoted(
  text: string,
  start: number,
  quote: "'" | '"',
): Result<{ content: string; end: number }, ShellWordsProblem> {
  let content = "";
  let index = start + 1;
  while (index < text.length) {
    const char = text.charAt(index);
    if (char === quote) return ok({ content, end: index + 1 });
    const next = text.charAt(index + 1);
    if (quote === '"' && char === "\\" && next !== "" && '"\\$`\n'.includes(next)) {
      if (next !== "\n") content += next;
      index += 2;
    } else {
      content += char;
      index += 1;
    }
  }
  return err({ kind: "unclosed-quote", quote, offset: start });
}

/** Writes a word so that a shell, or `splitShellWords`, reads it back as the same one. */
export function quoteShellWord(word: string): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
