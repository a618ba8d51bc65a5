import { expect, test } from "vitest";
import { createArtifactAllowance } from "../../../src/bus/artifact-allowance.ts";
import { createRateBucket } from "../../../src/bus/rate-bucket.ts";

test("lets a burst through, then the steady rate", () => {
  const bucket = createRateBucket(10, 5);
  expect([1, 2, 3, 4, 5].map(() => bucket.take(1, 0))).toEqual([0, 0, 0, 0, 0]);
  expect(bucket.take(1, 0)).toBe(100);
  expect(bucket.take(1, 99)).toBe(1);
  expect(bucket.take(1, 100)).toBe(0);
  let taken = 0;
  for (let nowMs = 1000; nowMs < 11_000; nowMs += 1) if (bucket.take(1, nowMs) === 0) taken += 1;
  expect(taken).toBeGreaterThanOrEqual(100);
  expect(taken).toBeLessThanOrEqual(105);
});

test("an amount over the burst waits for a full bucket, not for ever", () => {
  const bucket = createRateBucket(100, 50);
  expect(bucket.take(1000, 0)).toBe(0);
  expect(bucket.take(1000, 0)).toBe(500);
  expect(bucket.take(1000, 500)).toBe(0);
});

test("a clock that steps back takes nothing away", () => {
  const bucket = createRateBucket(10, 2);
  expect(bucket.take(1, 1000)).toBe(0);
  expect(bucket.take(1, 0)).toBe(0);
  expect(bucket.take(1, 0)).toBe(100);
});

test("artifacts are counted by name, replaced once, given back", () => {
  const allowance = createArtifactAllowance(2, 100);
  const first = allowance.reserve("a", 60);
  expect(first.ok).toBe(true);
  expect(allowance.reserve("b", 41)).toEqual({ ok: false, error: expect.stringContaining("101") });
  expect(allowance.reserve("a", 100).ok).toBe(true);
  expect(allowance.reserve("b", 1).ok).toBe(false);
  expect(allowance.reserve("a", 10).ok).toBe(true);
  const second = allowance.reserve("b", 90);
  expect(second.ok).toBe(true);
  expect(allowance.reserve("c", 0)).toEqual({ ok: false, error: expect.stringContaining("2") });
  if (second.ok) second.value.giveBack();
  expect(allowance.reserve("c", 90).ok).toBe(true);
});
