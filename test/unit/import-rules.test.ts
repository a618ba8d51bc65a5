import { createRequire } from "node:module";
import { join } from "node:path";
import { cruise, type ICruiseResult, type IForbiddenRuleType } from "dependency-cruiser";
import extractTsConfig from "dependency-cruiser/config-utl/extract-ts-config";
import { describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const BAD_TREE = join(ROOT, "test/fixtures/bad-imports");

const config = createRequire(import.meta.url)(join(ROOT, ".dependency-cruiser.cjs")) as {
  readonly forbidden: readonly IForbiddenRuleType[];
  readonly options: object;
};
const ruleNames = config.forbidden.map(({ name }) => name ?? "");

/** Runs the project's own rules over `src/` below a folder. */
async function cruiseSource(baseDir: string): Promise<ICruiseResult> {
  const { output } = await cruise(
    ["src"],
    { ...config.options, baseDir, validate: true, ruleSet: { forbidden: [...config.forbidden] } },
    undefined,
    { tsConfig: extractTsConfig(join(ROOT, "tsconfig.json")) },
  );
  if (typeof output === "string")
    throw new Error("dependency-cruiser answered with text instead of a result");
  return output;
}

function violations(result: ICruiseResult): readonly string[] {
  return result.summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`);
}

describe("import rules", () => {
  test("hold over the whole source", async () => {
    const result = await cruiseSource(ROOT);
    expect(violations(result)).toEqual([]);
    // The tool has a way of reading nothing and finding nothing wrong with it.
    const own = result.modules.filter(({ source }) => source.startsWith("src/"));
    expect(own.length).toBeGreaterThan(30);
    expect(
      own.some(({ dependencies }) =>
        dependencies.some(({ dependencyTypes }) => dependencyTypes.includes("type-only")),
      ),
    ).toBe(true);
  });

  test("bite: every one of them reports its planted violation", async () => {
    const found = violations(await cruiseSource(BAD_TREE));
    expect([...new Set(found.map((line) => line.split(":")[0]))].sort()).toEqual([...ruleNames].sort());
    expect(found.filter((line) => /compose\.ts|docker-engine\.ts/.test(line))).toEqual([]);
  });
});
