import { describe, expect, test } from "vitest";
import { gitText } from "../../../src/workspace/git.ts";
import { integratePatches } from "../../../src/workspace/integrate-patches.ts";
import { stateOf, writeUserFile } from "./apply-rig.ts";

import { apply, rigWith, undo } from "./apply-steps.ts";

describe("apply to a branch", () => {
  test("one commit per task with its message; the checkout is left alone; undo removes it", async () => {
    const rig = await rigWith();
    const first = await rig.patch("one", "echo 1 > f1");
    const second = await rig.patch("two", "echo 2 > f2", first.commit);
    const result = await integratePatches(rig.store.gitDir, rig.base, [first, second]);
    if (!result.ok) throw new Error("refused");
    writeUserFile(rig, "a.txt", "dirty\n");
    const before = stateOf(rig);
    const applied = await apply(rig, result.value, { branch: "agents/größe" });
    expect(applied).toMatchObject({
      ok: true,
      value: { target: "refs/heads/agents/größe", files: ["f1", "f2"] },
    });
    expect(stateOf(rig)).toBe(before);
    expect(rig.sh("git log --format=%s%n%b --reverse main..agents/größe")).toBe(
      "Do one\nBulkhead-Task: one\n\nDo two\nBulkhead-Task: two\n\n",
    );
    expect(rig.sh("git fsck --no-dangling 2>&1")).toBe("");
    for (const [branch, reason] of [
      ["agents/größe", "branch-exists"],
      ["agents", "branch-exists"],
      ["-x", "branch-name"],
      ["a..b", "branch-name"],
    ]) {
      expect(await apply(rig, result.value, { branch: branch ?? "" })).toEqual({
        ok: false,
        error: { reason, files: [branch] },
      });
    }
    if (!applied.ok) return;
    rig.sh("git worktree add -q ../other agents/größe");
    expect(await undo(rig, applied.value.undo, applied.value.target)).toMatchObject({
      error: { reason: "checked-out" },
    });
    rig.sh("git worktree remove ../other");
    expect(await undo(rig, applied.value.undo, applied.value.target)).toEqual({ ok: true, value: null });
    expect(rig.sh("git branch --format='%(refname:short)'")).toBe("main\n");
  });
});

describe("integrate", () => {
  test("siblings are merged, what dependencies share counts once, contained patches make no commit", async () => {
    const rig = await rigWith();
    const a = await rig.patch("a", "sed -i 's/one/ONE/' a.txt");
    const b = await rig.patch("b", "sed -i 's/eight/EIGHT/' a.txt; rm b.txt");
    const c = await rig.patch("c", "echo c > c.txt", a.commit);
    const same = await rig.patch("same", "sed -i 's/one/ONE/' a.txt");
    const result = await integratePatches(rig.store.gitDir, rig.base, [a, b, c, same]);
    if (!result.ok) throw new Error("refused");
    const log = await gitText(rig.store.gitDir, [
      "log",
      "--format=%s",
      "--reverse",
      `${rig.base}..${result.value.commit}`,
    ]);
    expect(log).toBe("Do a\nDo b\nDo c");
    expect(await gitText(rig.store.gitDir, ["show", `${result.value.commit}:a.txt`])).toContain("ONE\ntwo");
    const again = await integratePatches(rig.store.gitDir, rig.base, [a, b, c, same]);
    expect(again).toEqual(result);
    const clash = await rig.patch("clash", "sed -i 's/one/eins/' a.txt");
    expect(await integratePatches(rig.store.gitDir, rig.base, [a, clash])).toEqual({
      ok: false,
      error: { taskId: "clash", files: ["a.txt"] },
    });
    expect(await integratePatches(rig.store.gitDir, rig.base, [])).toMatchObject({
      ok: true,
      value: { commit: rig.base },
    });
  });
});
