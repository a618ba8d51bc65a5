import type { CapName } from "../../model/caps.ts";
import { formatBytes } from "../../util/bytes.ts";
import { sanitizeForTerminal } from "../../util/sanitize-text.ts";
import type { MeasuredCap } from "./cap-probes.ts";

const HEADINGS = ["cap", "asked", "measured", "state", "verdict", "how"] as const;

/** The table of `bulkhead doctor --caps`, one line a cap. */
export function renderCaps(rows: readonly MeasuredCap[]): string {
  const cells = rows.map(({ cap, asked, measured, state, verdict, why }) => [
    cap,
    formatCap(cap, asked),
    measured === null ? "-" : formatCap(cap, measured),
    state,
    verdict,
    sanitizeForTerminal(why),
  ]);
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...cells.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return `${[line(HEADINGS), ...cells.map(line)].join("\n")}\n`;
}

/** A cap's value in its own unit. */
function formatCap(cap: CapName, value: number): string {
  switch (cap) {
    case "memory":
    case "swap":
    case "tmp":
    case "disk":
      return formatBytes(value);
    case "ioReadBytes":
    case "ioWriteBytes":
      return `${formatBytes(value)}/s`;
    case "ioReadOps":
    case "ioWriteOps":
      return `${Math.round(value)}/s`;
    case "cpus":
      return `${Math.round(value * 1000) / 1000} cores`;
    case "pids":
    case "openFiles":
      return String(value);
  }
}
