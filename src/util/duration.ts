const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `90s`, `30m`, `1h30m`, `1.5h`, `500ms`, `2d`, or a bare number of seconds. */
export const DURATION_PATTERN = /^\s*(?:\d+(?:\.\d+)?|(?:\d+(?:\.\d+)?(?:ms|[smhd]))+)\s*$/;

/** Reads a length of time in milliseconds; a number is seconds. Null where it is none. */
export function parseDurationMs(value: string | number): number | null {
  const ms = typeof value === "number" ? value * 1000 : parseText(value);
  if (ms === null || !Number.isFinite(ms) || ms < 0) return null;
  const whole = Math.round(ms);
  return Number.isSafeInteger(whole) ? whole : null;
}

function parseText(text: string): number | null {
  if (!DURATION_PATTERN.test(text)) return null;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)];
  if (parts.length === 0) return Number(text) * 1000;
  return parts.reduce((sum, part) => sum + Number(part[1]) * (UNIT_MS[part[2] ?? ""] ?? 0), 0);
}

/** Writes a length of time for people: `1h 30m`, `12.5s`, `40ms`; never more than two units. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${Math.floor(ms / 100) / 10}s`;
  const seconds = Math.floor(ms / 1000);
  const units = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ] as const;
  const first = units.findIndex(([amount]) => amount > 0);
  return units
    .slice(first, first + 2)
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join(" ");
}
