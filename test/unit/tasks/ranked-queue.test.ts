import fc from "fast-check";
import { expect, test } from "vitest";
import { createFifo } from "../../../src/tasks/fifo.ts";
import { createRankedQueue, type RankedEntry } from "../../../src/tasks/ranked-queue.ts";

test("pops by rank, then by index, whatever the mix of pushes and pops", () => {
  const operations = fc.array(fc.option(fc.tuple(fc.integer({ min: -5, max: 5 }), fc.nat(50)), { freq: 2 }));
  fc.assert(
    fc.property(operations, (steps) => {
      const queue = createRankedQueue();
      const model: RankedEntry[] = [];
      for (const step of steps) {
        if (step) {
          const entry = { rank: step[0], index: step[1] };
          queue.push(entry);
          model.push(entry);
          model.sort((a, b) => a.rank - b.rank || a.index - b.index);
        } else {
          expect(queue.peek()).toEqual(model[0]);
          expect(queue.pop()).toEqual(model.shift());
        }
        expect(queue.size).toBe(model.length);
      }
    }),
  );
});

test("n pushes and pops take O(n log n) comparisons, also for sorted and for equal ranks", () => {
  const count = 20_000;
  for (const rank of [(i: number) => i, (i: number) => -i, () => 0, (i: number) => (i * 7919) % count]) {
    const queue = createRankedQueue();
    for (let i = 0; i < count; i += 1) queue.push({ rank: rank(i), index: i });
    while (queue.pop());
    expect(queue.steps).toBeLessThan(3 * count * Math.log2(count));
  }
});

test("a fifo gives back in order, and undefined when empty", () => {
  const fifo = createFifo<number>();
  fifo.drop();
  fifo.push(1);
  fifo.push(2);
  fifo.drop();
  fifo.push(3);
  const out = [];
  for (let item = fifo.peek(); item !== undefined; item = fifo.peek()) {
    out.push(item);
    fifo.drop();
  }
  expect(out).toEqual([2, 3]);
});
