/**
 * How many columns text takes on a terminal, close to what terminals do: two for East Asian wide characters and emoji, none for
 * combining marks. LIMITATION: ambiguous-width characters count one; a terminal set to draw them wide cuts a line a little late.
 */
const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Printable ASCII, which most lines are made of. */
const PLAIN = /^[\x20-\x7e]*$/;
const ZERO = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;
const EMOJI = /\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f|\p{Regional_Indicator}|\u20e3/u;

/** First and last code point of the blocks that are drawn wide (Unicode: East_Asian_Width W and F). */
const WIDE: ReadonlyArray<readonly [number, number]> = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x17000, 0x18cff],
  [0x1b000, 0x1b2ff],
  [0x20000, 0x3fffd],
];

function graphemeWidth(grapheme: string): number {
  if (ZERO.test(grapheme)) return 0;
  if (EMOJI.test(grapheme)) return 2;
  const code = grapheme.codePointAt(0) ?? 0;
  return code >= 0x1100 && WIDE.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}

/** Columns of plain text (no escape sequences). */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** The beginning that fits into `columns`, with `…` in place of what was cut. */
export function truncateToWidth(text: string, columns: number): string {
  if (columns <= 0) return "";
  if (text.length <= columns && PLAIN.test(text)) return text;
  if (PLAIN.test(text)) return `${text.slice(0, columns - 1)}…`;
  let width = 0;
  let kept = "";
  let keptShort = "";
  for (const { segment } of segmenter.segment(text)) {
    const next = width + graphemeWidth(segment);
    if (next > columns) return `${keptShort}…`;
    kept += segment;
    if (next <= columns - 1) keptShort = kept;
    width = next;
  }
  return kept;
}

/** Truncated or filled with spaces to exactly `columns`. */
export function fitToWidth(text: string, columns: number): string {
  const cut = truncateToWidth(text, columns);
  return cut + " ".repeat(Math.max(0, columns - displayWidth(cut)));
}
