import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CommandDeps } from "../../../src/cli/command-deps.ts";
import { registerApply } from "../../../src/cli/commands/apply.ts";
import { registerCancel } from "../../../src/cli/commands/cancel.ts";
import { registerDiff } from "../../../src/cli/commands/diff.ts";
import { registerGc } from "../../../src/cli/commands/gc.ts";
import { registerGraph } from "../../../src/cli/commands/graph.ts";
import { registerStatus } from "../../../src/cli/commands/status.ts";
import { registerUndo } from "../../../src/cli/commands/undo.ts";
import { type CommandRig, createCommandRig } from "../../support/command-rig.ts";
import {
  id,
  mixedRun,
  OOM,
  RUN,
  samplePatch,
  sampleTask,
  submitted,
  succeeded,
} from "../../support/sample-run.ts";

let rig: CommandRig;
beforeEach(() => {
  rig = createCommandRig();
});
afterEach(() => rig.dispose());

/** A chain a → b → c that succeeded (b changed nothing), d beside it that failed, e held by d. */
function recordChain(): void {
  rig.record(
    submitted([
      sampleTask("c", { dependsOn: [id("b")] }),
      sampleTask("b", { dependsOn: [id("a")] }),
      sampleTask("a"),
      sampleTask("d"),
      sampleTask("e", { dependsOn: [id("d")] }),
    ]),
    succeeded("a", samplePatch("a", [["a.txt", 1, 0]])),
    succeeded("b", samplePatch("b", [])),
    succeeded("c", samplePatch("c", [["c.txt", 2, 1]])),
    { type: "task-failed", taskId: id("d"), attempt: 1, failure: OOM },
    { type: "task-held", taskId: id("e"), because: id("d") },
    { type: "run-finished", outcome: { status: "failed", succeeded: 3, failed: 1, cancelled: 0, held: 1 } },
  );
}

/** The ports behind `apply`, noting what they were asked. */
function applyPorts(calls: unknown[]): Partial<CommandDeps> {
  return {
    integratePatches: async (_, patches) => {
      calls.push(["integrate", ...patches.map(({ taskId }) => taskId)]);
      return { ok: true, value: { parent: "base", commit: "merged" } };
    },
    diffPatch: async (_, range, options) => Buffer.from(`stat of ${range.commit} as ${options.format}\n`),
    applyPatches: async (_, integrated, options) => {
      calls.push(["apply", integrated.commit, options]);
      return { target: "worktree", headBefore: "h", tree: "t", undo: "recipe" };
    },
    undoApply: async (_, applied) => {
      calls.push(["undo", applied.target, applied.undo]);
    },
  };
}

describe("bulkhead status", () => {
  test("shows the newest run, JSON on request, and lists all", async () => {
    rig.record(...mixedRun().map(({ event }) => event));
    expect((await rig.run(registerStatus, ["status"])).stdout).toContain("✗ memory   failed");
    const json = JSON.parse((await rig.run(registerStatus, ["status", "3f9a2c", "--json"])).stdout);
    expect(json).toMatchObject({ version: 1, run_id: RUN, counts: { held: 2 } });
    expect((await rig.run(registerStatus, ["status", "--all"])).stdout).toMatch(
      /^20261130-142501-3f9a2c {2}failed /,
    );
  });

  test("without a run it says how to start one", async () => {
    const { error } = await rig.run(registerStatus, ["status"]);
    expect(error).toMatchObject({ code: "run-not-found", message: "there are no runs yet" });
  });
});

describe("bulkhead graph", () => {
  test("draws a run, and a plan where the name is a path", async () => {
    rig.record(...mixedRun().map(({ event }) => event));
    expect((await rig.run(registerGraph, ["graph"])).stdout).toContain("Level 2\n  ◌ docs     ← memory\n");
    const deps = { loadPlan: async () => [sampleTask("only", { title: "From the plan" })] };
    expect((await rig.run(registerGraph, ["graph", rig.stateDir], { deps })).stdout).toBe(
      "Level 1\n  only  From the plan\n",
    );
  });
});

describe("bulkhead diff", () => {
  test("several tasks under their names; hostile bytes taken out on a terminal only", async () => {
    recordChain();
    const hostile = "+evil \u001b]0;owned\u0007\u202etext\n";
    const deps: Partial<CommandDeps> = { diffPatch: async () => Buffer.from(hostile) };
    expect((await rig.run(registerDiff, ["diff", "latest", "a"], { deps })).stdout).toBe(hostile);
    expect((await rig.run(registerDiff, ["diff"], { deps, isTty: true })).stdout).toBe(
      "# c: 1 file +2 -1\n+evil text\n# b: no changes\n+evil text\n# a: 1 file +1 -0\n+evil text\n",
    );
  });

  test("a task without a patch says why", async () => {
    recordChain();
    const { error } = await rig.run(registerDiff, ["diff", "latest", "e"]);
    expect(error?.message).toBe("e has no patch: it was held, because d did not succeed");
  });
});

describe("bulkhead apply and undo", () => {
  test("dependencies first, what is empty or failed left out and named, logged, and undone again", async () => {
    recordChain();
    const calls: unknown[] = [];
    const deps = applyPorts(calls);
    const applied = await rig.run(registerApply, ["apply", "-y"], { deps });
    expect(applied.stdout).toBe(`\
2 patches: a, c
without a change: b
not taken, since they did not succeed: d, e
stat of merged as stat
applied 2 patches to the work tree; it is staged, not committed
to take it back: bulkhead undo ${RUN}
`);
    expect(calls).toEqual([
      ["integrate", "a", "c"],
      ["apply", "merged", { branch: null, dryRun: false }],
    ]);
    expect([...rig.store.read(RUN)].at(-1)?.event).toEqual({
      type: "patches-applied",
      taskIds: ["a", "c"],
      target: "worktree",
      headBefore: "h",
      tree: "t",
      undo: "recipe",
    });
    const undone = await rig.run(registerUndo, ["undo"], { deps });
    expect(undone.stdout).toBe("took back a, c from the work tree\n");
    expect(calls.at(-1)).toEqual(["undo", "worktree", "recipe"]);
    expect((await rig.run(registerUndo, ["undo"], { deps })).error).toMatchObject({ code: "undo-refused" });
  });

  test("a chosen task brings what it depends on, and says so", async () => {
    recordChain();
    const calls: unknown[] = [];
    const { stdout } = await rig.run(registerApply, ["apply", "latest", "c", "-y", "--branch", "x"], {
      deps: applyPorts(calls),
    });
    expect(stdout).toContain("2 patches: a, c\nwith what they depend on: a, b\n");
    expect(calls.at(-1)).toEqual(["apply", "merged", { branch: "x", dryRun: false }]);
  });

  test("a failed or held task is refused with the reason, before anything is integrated", async () => {
    recordChain();
    const failed = await rig.run(registerApply, ["apply", "latest", "d", "-y"]);
    expect(failed.error).toMatchObject({
      code: "apply-refused",
      message: "d cannot be applied: it failed: out of memory: cap 512 MiB, peak 512 MiB",
    });
    const held = await rig.run(registerApply, ["apply", "latest", "e", "-y"]);
    expect(held.error?.message).toBe("e cannot be applied: it was held, because d did not succeed");
  });

  test("a conflict names the task and the files, escaped, and nothing is applied", async () => {
    recordChain();
    const deps: Partial<CommandDeps> = {
      integratePatches: async () => ({
        ok: false,
        error: { taskId: id("c"), files: ["src/x.ts", "a\u001b[0m"] },
      }),
    };
    const { error } = await rig.run(registerApply, ["apply", "-y"], { deps });
    expect(error).toMatchObject({
      code: "apply-refused",
      message: 'the patch of c conflicts with the ones before it in src/x.ts, "a\\x1b[0m"',
    });
  });

  test.each([
    ["y\n", "applied 2 patches", 2],
    ["n\n", "nothing was applied", 1],
    ["", "nothing was applied", 1],
  ])("asks on a terminal: %j", async (typed, said, expectedCalls) => {
    recordChain();
    const calls: unknown[] = [];
    const result = await rig.run(registerApply, ["apply"], { deps: applyPorts(calls), isTty: true, typed });
    expect(result.stderr).toContain("Apply to /home/ada/shop? [y/N]");
    expect(result.stdout).toContain(said);
    expect(calls).toHaveLength(expectedCalls);
    expect(result.exitCode).toBe(said.startsWith("nothing") ? 1 : undefined);
  });

  test("without a terminal it needs --yes; --dry-run applies and logs nothing", async () => {
    recordChain();
    const calls: unknown[] = [];
    const deps = applyPorts(calls);
    expect((await rig.run(registerApply, ["apply"], { deps })).error).toMatchObject({ code: "usage" });
    const dry = await rig.run(registerApply, ["apply", "--dry-run"], { deps });
    expect(dry.stdout).toContain("it would apply cleanly; nothing was changed");
    expect(calls.at(-1)).toEqual(["apply", "merged", { branch: null, dryRun: true }]);
    expect([...rig.store.read(RUN)].at(-1)?.event.type).toBe("run-finished");
  });

  test("where a supervisor lives, it alone writes the log", async () => {
    recordChain();
    const calls: unknown[] = [];
    const deps: Partial<CommandDeps> = {
      ...applyPorts(calls),
      connectSupervisor: async () => ({
        call: async (method, params) => {
          calls.push([method, params]);
        },
        close: () => calls.push("closed"),
      }),
    };
    await rig.run(registerApply, ["apply", "-y"], { deps });
    expect(calls.at(-2)).toMatchObject(["record", { run_id: RUN, event: { type: "patches-applied" } }]);
    expect(calls.at(-1)).toBe("closed");
    expect([...rig.store.read(RUN)].at(-1)?.event.type).toBe("run-finished");
  });
});

describe("bulkhead cancel", () => {
  test("calls the supervisor; says so where the run is over or nobody drives it", async () => {
    rig.record(submitted([sampleTask("a")]));
    const calls: unknown[] = [];
    const deps: Partial<CommandDeps> = {
      connectSupervisor: async () => ({
        call: async (method, params) => {
          calls.push([method, params]);
        },
        close: () => undefined,
      }),
    };
    expect((await rig.run(registerCancel, ["cancel", "latest", "a"], { deps })).stdout).toBe(
      `cancelling a of run ${RUN}\n`,
    );
    expect(calls).toEqual([["cancel", { run_id: RUN, task_id: "a" }]]);
    expect((await rig.run(registerCancel, ["cancel", "latest"])).error?.message).toBe(
      `run ${RUN} is not running: no supervisor drives it`,
    );
    rig.record({
      type: "run-finished",
      outcome: { status: "succeeded", succeeded: 1, failed: 0, cancelled: 0, held: 0 },
    });
    expect((await rig.run(registerCancel, ["cancel", "latest"], { deps })).error?.message).toBe(
      `run ${RUN} is not running: it is over`,
    );
  });
});

describe("bulkhead gc", () => {
  const items = [
    { kind: "container", name: "bh-x", why: "its run is not active" },
    { kind: "volume", name: "bh-y", why: "its run is not active", error: "busy" },
  ] as const;

  test("prints each item with why, and fails where one could not be removed", async () => {
    const asked: unknown[] = [];
    const deps: Partial<CommandDeps> = {
      gc: async (options) => {
        asked.push(options);
        return items;
      },
    };
    const { stdout, exitCode } = await rig.run(registerGc, ["gc", "--older-than", "7d"], { deps });
    expect(stdout).toBe(
      "removed container bh-x (its run is not active)\ncould not remove volume bh-y: busy\nremoved 1 thing, 1 failed\n",
    );
    expect(exitCode).toBe(3);
    expect(asked).toEqual([{ dryRun: false, olderThanMs: 7 * 86_400_000 }]);
    const dry = await rig.run(registerGc, ["gc", "--dry-run"], { deps: { gc: async () => [] } });
    expect(dry.stdout).toBe("nothing to remove\n");
  });
});
