/** One measured claim: how something compares with something else, over several runs. */
export interface BenchRow {
  /** What is compared, and which way: says whether a greater ratio is better. */
  readonly claim: string;
  /** What it is compared with. */
  readonly rival: string;
  readonly ratioMin: number;
  readonly ratioMedian: number;
  readonly ratioMax: number;
  readonly runs: number;
  /** Absolute figures, machine, conditions. */
  readonly detail?: string;
}

/** Builds a row from the ratio of each run. */
export function rowOf(claim: string, rival: string, ratios: readonly number[], detail?: string): BenchRow {
  const [ratioMin, ratioMedian, ratioMax] = spread(ratios);
  const row = { claim, rival, ratioMin, ratioMedian, ratioMax, runs: ratios.length };
  return detail === undefined ? row : { ...row, detail };
}

/** Least, middle and greatest of some numbers. */
export function spread(values: readonly number[]): readonly [min: number, median: number, max: number] {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const half = sorted.length / 2;
  const median = Number.isInteger(half) ? (at(half - 1) + at(half)) / 2 : at(Math.floor(half));
  return [at(0), median, at(sorted.length - 1)];
}

/** Prints rows as a table. */
export function printRows(rows: readonly BenchRow[]): void {
  const cells = rows.map((row) => [
    row.claim,
    row.rival,
    ...[row.ratioMin, row.ratioMedian, row.ratioMax].map((ratio) => ratio.toPrecision(3)),
    `${row.runs}`,
    row.detail ?? "",
  ]);
  const table = [["claim", "against", "min", "median", "max", "runs", "detail"], ...cells];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((line) => line[column]?.length ?? 0))) ?? [];
  for (const line of table) {
    console.log(
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    );
  }
}
