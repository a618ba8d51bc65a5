import { displayWidth } from "../../src/cli/render/display-width.ts";

const TOKENS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal reads control characters.
  /\x1b\[([\d;]*)([A-Za-z])|\x1b\]9999;([^\x07]*)\x07|\r|\n|\x1b|[^\x1b\r\n]/gsu;

/**
 * What a terminal of this size shows after these bytes: text, CR, LF, cursor up, erase to the end of line or screen, scrolling,
 * wrapping. Anything else that steers a terminal throws, so that nothing unforeseen is written unseen. `marks` are the screens at
 * each `ESC ] 9999 ; NAME BEL`.
 */
export function replayScreen(
  bytes: string,
  size: { columns: number; rows: number },
): { lines: string[]; marks: Map<string, string[]>; colors: number } {
  let screen: string[][] = [[]];
  let row = 0;
  let column = 0;
  let colors = 0;
  const marks = new Map<string, string[]>();
  const lines = (): string[] => screen.map((cells) => cells.join("").trimEnd());
  const lineFeed = (): void => {
    row += 1;
    if (row >= size.rows) {
      screen = screen.slice(1);
      row -= 1;
    }
    screen[row] ??= [];
  };
  const put = (text: string): void => {
    const width = displayWidth(text);
    if (column + width > size.columns) {
      lineFeed();
      column = 0;
    }
    const cells = screen[row] ?? [];
    while (cells.length < column) cells.push(" ");
    cells[column] = text;
    for (let i = 1; i < width; i += 1) cells[column + i] = "";
    screen[row] = cells;
    column += width;
  };
  for (const [token, parameters = "", command, mark] of bytes.matchAll(TOKENS)) {
    if (mark !== undefined) marks.set(mark, lines());
    else if (token === "\r") column = 0;
    else if (token === "\n") lineFeed();
    else if (command === "A") row = Math.max(0, row - Number(parameters || "1"));
    else if (command === "K") screen[row]?.splice(column);
    else if (command === "J") {
      screen[row]?.splice(column);
      screen.splice(row + 1);
    } else if (command === "m") colors += 1;
    else if (token.startsWith("\u001b")) throw new Error(`unforeseen escape ${JSON.stringify(token)}`);
    else put(token);
  }
  return { lines: lines(), marks, colors };
}
