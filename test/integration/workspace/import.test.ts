import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { gitText } from "../../../src/workspace/git.ts";
import { setUpBase } from "./import-base.ts";
import { CASES } from "./import-cases.ts";
import { createImportRig, type ImportRig } from "./import-rig.ts";

describe.each(["overlay", "copy"] as const)("%s import", (driver) => {
  let rig: ImportRig;
  beforeAll(async () => {
    rig = await createImportRig(driver, setUpBase);
  });
  afterAll(() => rig.dispose());

  test.each(CASES)("$name", async (item) => {
    const { outcome, oracle, canary } = await rig.run(item.change, {
      ...item.options,
      oracle: item.expect === "git",
    });
    expect(canary).toBe(false);
    if (typeof item.expect === "object" && "problems" in item.expect) {
      expect(outcome).toMatchObject({ ok: false, error: { reason: "result-refused", fault: "agent" } });
      const problems = outcome.ok || outcome.error.reason !== "result-refused" ? [] : outcome.error.problems;
      expect(problems.map((problem) => problem.kind)).toEqual(item.expect.problems);
      return;
    }
    expect(outcome).toMatchObject({ ok: true });
    if (!outcome.ok) return;
    const patch = outcome.value;
    expect(patch.parent).toBe(rig.baseCommit);
    if (item.expect === "git") expect(patch.tree).toBe(oracle);
    else if (item.expect === "empty")
      expect(patch).toMatchObject({ empty: true, files: [], commit: rig.baseCommit });
    else expect(new Set(patch.files.map((file) => file.path))).toEqual(new Set(item.expect.paths));
    expect(patch.empty).toBe(item.expect === "empty");
    expect(await gitText(rig.gitDir, ["rev-parse", `${patch.commit}^{tree}`])).toBe(patch.tree);
    if (item.ignored !== undefined) expect(patch.ignored.files).toBe(item.ignored);
  });

  test("every object made is sound, and refused results left no ref", async () => {
    expect(await gitText(rig.gitDir, ["fsck", "--strict", "--no-dangling"])).toBe("");
  });
});
