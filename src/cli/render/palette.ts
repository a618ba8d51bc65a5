import type { TaskState } from "../../observe/run-view.ts";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "blue" | "cyan";
const CODES: Readonly<Record<Style, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  cyan: [36, 39],
};

/** How things look on this terminal: colours and marks, or neither. */
export interface Palette {
  paint(style: Style, text: string): string;
  /** One column wide each. */
  readonly marks: Readonly<Record<TaskState, string>>;
  readonly separator: string;
  readonly isColored: boolean;
  readonly isUnicode: boolean;
}

export const STATE_STYLES: Readonly<Record<TaskState, Style>> = {
  waiting: "dim",
  running: "cyan",
  retrying: "yellow",
  succeeded: "green",
  failed: "red",
  held: "yellow",
  cancelled: "dim",
};

const UNICODE_MARKS: Palette["marks"] = {
  waiting: "·",
  running: "▸",
  retrying: "↻",
  succeeded: "✓",
  failed: "✗",
  held: "◌",
  cancelled: "–",
};
const ASCII_MARKS: Palette["marks"] = {
  waiting: ".",
  running: ">",
  retrying: "r",
  succeeded: "+",
  failed: "x",
  held: "o",
  cancelled: "-",
};

type Env = Readonly<Record<string, string | undefined>>;

/** Chooses by what the terminal says of itself: NO_COLOR (any value but empty), TERM=dumb, and whether the locale is UTF-8. */
export function choosePalette(env: Env, isTty: boolean): Palette {
  const isColored = isTty && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  return createPalette({ isColored, isUnicode: !isTty || /utf-?8/i.test(locale) });
}

export function createPalette(options: { isColored: boolean; isUnicode: boolean }): Palette {
  return {
    paint(style, text) {
      if (!options.isColored || text === "") return text;
      const [on, off] = CODES[style];
      return `\x1b[${on}m${text}\x1b[${off}m`;
    },
    marks: options.isUnicode ? UNICODE_MARKS : ASCII_MARKS,
    separator: options.isUnicode ? " · " : ", ",
    isColored: options.isColored,
    isUnicode: options.isUnicode,
  };
}
