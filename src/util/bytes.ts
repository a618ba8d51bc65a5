/** `512m`, `2GiB`, `1.5 g`, `4096`: every unit counts in 1024s, as container engines do (`MB` is the same as `MiB`). */
export const BYTES_PATTERN = /^\s*(\d+(?:\.\d+)?)\s*(?:([kKmMgGtT])(?:[iI]?[bB])?|[bB])?\s*$/;

const FACTORS: Readonly<Record<string, number>> = { k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** Reads a size in bytes; null where it is none (negative, not finite, unknown unit, beyond exact integers). */
export function parseBytes(value: string | number): number | null {
  const bytes = typeof value === "number" ? value : parseText(value);
  if (bytes === null || !Number.isFinite(bytes) || bytes < 0) return null;
  const whole = Math.round(bytes);
  return Number.isSafeInteger(whole) ? whole : null;
}

function parseText(text: string): number | null {
  const match = BYTES_PATTERN.exec(text);
  if (match?.[1] === undefined) return null;
  return Number(match[1]) * (FACTORS[match[2]?.toLowerCase() ?? ""] ?? 1);
}

/** Writes a size for people: `1 GiB`, `1.5 MiB`, `17 B`. At most one decimal, so it need not read back the same. */
export function formatBytes(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (Math.abs(amount) >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${Math.round(amount * 10) / 10} ${UNITS[unit] ?? "B"}`;
}
