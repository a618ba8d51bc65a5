/** At most eight draws a second: quicker than the eye follows, slow enough to cost nothing. */
const DRAW_INTERVAL_MS = 125;

/** Runs `work` soon after it is asked for, but never more often than the interval. */
export function createPacer(work: () => void): { request(): void; stop(): void } {
  let timer: NodeJS.Timeout | null = null;
  let lastAt = Number.NEGATIVE_INFINITY;
  return {
    request() {
      if (timer !== null) return;
      const waitMs = Math.max(0, lastAt + DRAW_INTERVAL_MS - performance.now());
      timer = setTimeout(() => {
        timer = null;
        lastAt = performance.now();
        work();
      }, waitMs);
    },
    stop() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
  };
}

export interface Screen {
  draw(lines: readonly string[]): void;
  /** A line that stays, above what is redrawn; written with the next draw. */
  addAbove(line: string): void;
  /** What stands on the screen is not certain any more: the next draw writes all of it. */
  forget(): void;
  /** What was drawn is left where it stands; the next draw begins below. */
  leave(): void;
  clear(): void;
}

/** The lines at the bottom of a terminal that belong to the view. */
export function createScreen(stdout: NodeJS.WritableStream): Screen {
  let shown: readonly string[] = [];
  let above: string[] = [];
  let isCertain = true;
  const up = (count: number): string => (count === 0 ? "" : `\x1b[${count}A`);
  /** Takes the view off the screen and prints what is to stay in its place. */
  const erase = (): string => {
    const stays = above.map((line) => `${line}\n`).join("");
    const erased = shown.length === 0 ? "" : `${up(shown.length)}\r\x1b[J`;
    shown = [];
    above = [];
    isCertain = true;
    return erased + stays;
  };
  return {
    draw(lines) {
      let out = "";
      if (!isCertain || above.length > 0) out = erase();
      else if (lines.length === shown.length && lines.every((line, i) => line === shown[i])) return;
      else out = up(shown.length);
      const old = shown;
      lines.forEach((line, i) => {
        out += line === old[i] ? "\n" : `\r${line}\x1b[K\n`;
      });
      if (lines.length < old.length) out += "\x1b[J";
      shown = lines;
      stdout.write(out);
    },
    addAbove(line) {
      above.push(line);
    },
    forget() {
      isCertain = false;
    },
    leave() {
      shown = [];
    },
    clear() {
      stdout.write(erase());
    },
  };
}
