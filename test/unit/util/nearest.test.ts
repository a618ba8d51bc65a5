import { expect, test } from "vitest";
import { nearest } from "../../../src/util/nearest.ts";

test.each([
  ["depend_on", ["caps", "depends_on", "env"], "depends_on"],
  ["dependsOn", ["depends_on"], "depends_on"],
  ["DEPENDS-ON", ["depends_on"], "depends_on"],
  ["memroy", ["memory", "swap"], "memory"],
  ["auht", ["auth", "aut"], "auth"],
  ["x", ["y"], "y"],
  ["timeout", ["retries", "image"], null],
  ["", ["a"], "a"],
  ["abc", [], null],
])("nearest(%j, %j) is %j", (word, candidates, expected) => {
  expect(nearest(word, candidates)).toBe(expected);
});

test("of two that are equally near the first is taken", () => {
  expect(nearest("tast", ["task", "test"])).toBe("task");
});

test("very long words are compared by their beginning", () => {
  expect(nearest("a".repeat(100_000), ["b", "a".repeat(90_000)])).toBe("a".repeat(90_000));
});
