import fc from "fast-check";
import { expect, test } from "vitest";
import { jitterShare } from "../../../src/tasks/jitter.ts";
import { retryDelayMs } from "../../../src/tasks/retry.ts";
import { id, NO_RETRIES } from "./run-fixtures.ts";

test("a share is in [0, 1) and the same for the same seed, task and attempt", () => {
  fc.assert(
    fc.property(fc.integer(), fc.string(), fc.nat(100), (seed, name, attempt) => {
      const share = jitterShare(seed, name, attempt);
      expect(share).toBeGreaterThanOrEqual(0);
      expect(share).toBeLessThan(1);
      expect(jitterShare(seed, name, attempt)).toBe(share);
    }),
  );
});

test("names that differ in one digit are spread evenly, and so are seeds and attempts", () => {
  const draws = [
    (i: number) => jitterShare(1, `task-${i}`, 1),
    (i: number) => jitterShare(i, "task", 1),
    (i: number) => jitterShare(1, "task", i),
  ];
  for (const draw of draws) {
    const buckets = new Array<number>(10).fill(0);
    for (let i = 0; i < 10_000; i += 1) {
      const bucket = Math.floor(draw(i) * 10);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    for (const count of buckets) expect(Math.abs(count - 1000)).toBeLessThan(150);
  }
});

test("the delay grows by the factor from the base, up to its cap, whatever the attempt", () => {
  const policy = { ...NO_RETRIES, baseMs: 1000, factor: 1.5, maxDelayMs: 5000 };
  const delays = [1, 2, 3, 4, 5, 6, 5000].map((attempt) => retryDelayMs(policy, 1, id("a"), attempt));
  expect(delays).toEqual([1000, 1500, 2250, 3375, 5000, 5000, 5000]);
  expect(retryDelayMs({ ...policy, baseMs: 0 }, 1, id("a"), 5000)).toBe(0);
});

test("jitter takes away at most its share of the delay, and differs between tasks", () => {
  const policy = { ...NO_RETRIES, baseMs: 10_000, jitter: 0.25 };
  const delays = Array.from({ length: 200 }, (_, i) => retryDelayMs(policy, 1, id(`t${i}`), 1));
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(7500);
  expect(Math.max(...delays)).toBeLessThanOrEqual(10_000);
  expect(new Set(delays).size).toBeGreaterThan(150);
});
