/** Runs every bench and prints one table. Usage: node bench/run.ts [name…], names being those of the files. */
import { type BenchRow, printRows } from "./support/bench-row.ts";

interface Bench {
  readonly name: string;
  run(): Promise<BenchRow[]>;
}

const BENCHES: readonly Bench[] = [
  { name: "decide", run: async () => (await import("./decide.bench.ts")).runDecideBench() },
  { name: "life", run: async () => (await import("./life.bench.ts")).runLifeBench() },
  { name: "snapshot", run: async () => (await import("./snapshot.bench.ts")).runSnapshotBench() },
  { name: "bus", run: async () => (await import("./bus.bench.ts")).runBusBench() },
];

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !BENCHES.some((bench) => bench.name === name));
if (unknown.length > 0) {
  console.error(
    `error: no bench "${unknown.join('", "')}"; there are ${BENCHES.map(({ name }) => name).join(", ")}`,
  );
  process.exit(2);
}
const rows: BenchRow[] = [];
for (const bench of BENCHES) {
  if (wanted.length > 0 && !wanted.includes(bench.name)) continue;
  console.error(`bench: ${bench.name} …`);
  rows.push(...(await bench.run()));
}
printRows(rows);
