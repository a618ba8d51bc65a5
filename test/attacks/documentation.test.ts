import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readAttacks, SECURITY_PAGE, withAttackTable } from "../../scripts/attack-table.ts";

test("docs/security.md lists every attack (if not: node scripts/attack-table.ts)", () => {
  const page = readFileSync(SECURITY_PAGE, "utf8");
  expect(page).toBe(withAttackTable(page));
});

test("every id in the tests is read, once", () => {
  const ids = readAttacks().map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBeGreaterThanOrEqual(60);
  // Each literal that looks like an id is one: none has a claim that the table misses.
  const sources = readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith(".test.ts") && name !== "documentation.test.ts")
    .map((name) => readFileSync(`${import.meta.dirname}/${name}`, "utf8"));
  const written = sources.flatMap((source) => [...source.matchAll(/\bid: "([a-z-]+\/[a-z0-9-]+)"/g)]);
  expect(ids).toEqual(expect.arrayContaining(written.map(([, id]) => id)));
});
