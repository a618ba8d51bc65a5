/**
 * Turns captured terminal screens (text with SGR colours, as `tmux capture-pane -e` gives them) into one SVG that plays them.
 * Usage: node scripts/frames-to-svg.ts OUT.svg SECONDS_PER_FRAME FRAME…   (the last frame stays three times as long)
 */
import { readFileSync, writeFileSync } from "node:fs";

const CHAR_WIDTH = 8.4;
const LINE_HEIGHT = 18;
const MARGIN = 16;
const COLORS: Readonly<Record<number, string>> = {
  30: "#3b4252",
  31: "#e06c75",
  32: "#98c379",
  33: "#e5c07b",
  34: "#61afef",
  35: "#c678dd",
  36: "#56b6c2",
  37: "#dcdfe4",
};

interface Run {
  readonly text: string;
  readonly color: string | null;
  readonly isBold: boolean;
  readonly isDim: boolean;
}

/** Splits one line into runs of equal style. Only the styles that bulkhead prints are known; others are passed over. */
function parseLine(line: string): Run[] {
  const runs: Run[] = [];
  let style = { color: null as string | null, isBold: false, isDim: false };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what this reads
  for (const part of line.split(/(\x1b\[[0-9;]*m)/)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
    const codes = /^\x1b\[([0-9;]*)m$/.exec(part);
    if (!codes) {
      if (part !== "") runs.push({ text: part, ...style });
      continue;
    }
    for (const code of (codes[1] || "0").split(";").map(Number)) {
      if (code === 0) style = { color: null, isBold: false, isDim: false };
      else if (code === 1) style = { ...style, isBold: true };
      else if (code === 2) style = { ...style, isDim: true };
      else if (code === 22) style = { ...style, isBold: false, isDim: false };
      else if (code === 39) style = { ...style, color: null };
      else if (COLORS[code]) style = { ...style, color: COLORS[code] };
    }
  }
  return runs;
}

function escapeXml(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function renderLine(line: string, row: number): string {
  const spans = parseLine(line).map(({ text, color, isBold, isDim }) => {
    const weight = isBold ? ' font-weight="bold"' : "";
    const opacity = isDim ? ' fill-opacity="0.6"' : "";
    return `<tspan fill="${color ?? "#dcdfe4"}"${weight}${opacity}>${escapeXml(text)}</tspan>`;
  });
  const y = MARGIN + (row + 1) * LINE_HEIGHT;
  return spans.length === 0
    ? ""
    : `<text x="${MARGIN}" y="${y}" xml:space="preserve">${spans.join("")}</text>`;
}

const [out, secondsText, ...paths] = process.argv.slice(2);
if (!out || !secondsText || paths.length === 0) {
  console.error("usage: node scripts/frames-to-svg.ts OUT.svg SECONDS_PER_FRAME FRAME…");
  process.exit(2);
}
const frames = paths.map((path) => readFileSync(path, "utf8").replace(/\s+$/, "").split("\n"));
const rows = Math.max(...frames.map((frame) => frame.length));
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const columns = Math.max(...frames.flat().map((line) => line.replace(/\x1b\[[0-9;]*m/g, "").length));
const width = Math.ceil(columns * CHAR_WIDTH + 2 * MARGIN);
const height = rows * LINE_HEIGHT + 2 * MARGIN + 6;
const seconds = Number(secondsText);
const total = seconds * (frames.length + 2);
const groups = frames.map((frame, index) => {
  const from = (100 * index * seconds) / total;
  const to = index === frames.length - 1 ? 100 : (100 * (index + 1) * seconds) / total;
  const lines = frame.map(renderLine).join("\n");
  // step-end holds each keyframe's value until the next one: a frame is gone at the very moment its successor comes.
  const before = index === 0 ? "" : "0%{visibility:hidden}";
  const after = index === frames.length - 1 ? "" : `${to.toFixed(3)}%,100%{visibility:hidden}`;
  const style = `@keyframes f${index}{${before}${from.toFixed(3)}%{visibility:visible}${after}}`;
  // Without animation support the last frame is what is seen.
  const visibility = index === frames.length - 1 ? "visible" : "hidden";
  return `<style>${style}.f${index}{animation:f${index} ${total}s step-end infinite}</style><g class="f${index}" visibility="${visibility}">\n${lines}\n</g>`;
});
writeFileSync(
  out,
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">
<rect width="100%" height="100%" rx="8" fill="#21252b"/>
${groups.join("\n")}
</svg>
`,
);
