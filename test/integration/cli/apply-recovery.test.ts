/** `bulkhead apply` and `undo` as commands, over a real log and a real repository, also after an apply that was killed. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { RunEvent } from "../../../src/model/event.ts";
import { runIdSchema } from "../../../src/model/ids.ts";
import { openEventStore } from "../../../src/store/sqlite/sqlite-event-store.ts";
import { databasePath } from "../../../src/util/state-layout.ts";
import { gitText } from "../../../src/workspace/git.ts";
import { integratePatches, type PatchToIntegrate } from "../../../src/workspace/integrate-patches.ts";
import { id, RUN, samplePatch, sampleTask, submitted, succeeded } from "../../support/sample-run.ts";
import { type ApplyRig, createApplyRig, stateOf } from "../workspace/apply-rig.ts";

const MAIN = new URL("../../../src/cli/main.ts", import.meta.url).pathname;
const CHILD = new URL("../workspace/apply-child.ts", import.meta.url).pathname;

let rig: ApplyRig;
let patches: readonly PatchToIntegrate[];
let stateDir: string;
beforeEach(async () => {
  rig = await createApplyRig();
  stateDir = join(rig.root, "state");
  const one = await rig.patch("one", "echo 1 > f1; echo more >> a.txt");
  const two = await rig.patch("two", "echo 2 > f2; rm b.txt", one.commit);
  patches = [one, two];
  const begun = submitted([sampleTask("one"), sampleTask("two", { dependsOn: [id("one")] })]);
  if (begun.type !== "run-submitted") throw new Error("not the beginning of a run");
  log(
    { ...begun, settings: { ...begun.settings, repository: rig.repository, baseCommit: rig.base } },
    ...patches.map(({ taskId, parent, commit }) =>
      succeeded(taskId, { ...samplePatch(taskId, [["f", 1, 0]]), parent, commit }),
    ),
  );
});
afterEach(() => rig.dispose());

function log(...events: readonly RunEvent[]): void {
  execFileSync("mkdir", ["-p", stateDir]);
  const store = openEventStore(databasePath(stateDir), { nowMs: () => 1_800_000_000_000 });
  store.append(RUN, events);
  store.close();
}

function events(): RunEvent[] {
  const store = openEventStore(databasePath(stateDir), { readOnly: true });
  try {
    return [...store.read(RUN)].map(({ event }) => event);
  } finally {
    store.close();
  }
}

function bulkhead(...args: readonly string[]): { code: number | null; stdout: string; stderr: string } {
  const env = {
    ...process.env,
    BULKHEAD_STATE_DIR: stateDir,
    BULKHEAD_CACHE_DIR: join(rig.root, "cache"),
    NO_COLOR: "1",
  };
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], { env, encoding: "utf8" });
  return { code: status, stdout, stderr };
}

/** An apply (or undo) that ends without a word to the log: killed after so many files, or after the last. */
async function endEarly(dieAfter: number | null, undo?: string): Promise<void> {
  const result = await integratePatches(rig.store.gitDir, rig.base, patches);
  if (!result.ok) throw new Error("conflict");
  const order = {
    cacheDir: join(rig.root, "cache"),
    repository: rig.repository,
    journalDir: join(stateDir, "applies"),
    integrated: result.value,
    run: { runId: RUN, taskIds: ["one", "two"] },
    dieAfter: dieAfter ?? 1_000_000,
    undo,
  };
  const child = spawnSync(process.execPath, [CHILD, JSON.stringify(order)], { encoding: "utf8" });
  expect(child.signal).toBe(dieAfter === null ? null : "SIGKILL");
}

function applied(): { undo: string; isUndone: boolean }[] {
  const found: { undo: string; isUndone: boolean }[] = [];
  for (const event of events()) {
    if (event.type === "patches-applied") found.push({ undo: event.undo, isUndone: false });
    if (event.type === "apply-undone") {
      const last = found.findLast(({ isUndone }) => !isUndone);
      if (last) last.isUndone = true;
    }
  }
  return found;
}

const WHOLE = "M  a.txt\nD  b.txt\nA  f1\nA  f2\n";

test("apply and undo, in the work tree and as a branch", async () => {
  const before = stateOf(rig);
  const done = bulkhead("apply", "-y");
  expect(done).toMatchObject({ code: 0, stderr: "" });
  expect(done.stdout).toContain("2 patches: one, two\n");
  expect(rig.sh("git status --porcelain")).toBe(WHOLE);
  expect(bulkhead("apply", "-y")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("these files have changes of your own: a.txt, b.txt"),
  });
  expect(bulkhead("undo")).toMatchObject({ code: 0, stdout: "took back one, two from the work tree\n" });
  expect(stateOf(rig)).toBe(before);
  expect(bulkhead("apply", "--branch", "x", "-y").code).toBe(0);
  expect(rig.sh("git log --format='%an %cn %s' --reverse main..x")).toBe("t u Do one\nt u Do two\n");
  expect(bulkhead("undo").code).toBe(0);
  expect(rig.sh("git branch --list x")).toBe("");
});

test.each([1, 3])("killed after %i files: undo takes it back, apply is whole", async (dieAfter) => {
  const before = stateOf(rig);
  await endEarly(dieAfter);
  expect(stateOf(rig)).not.toBe(before);
  expect(bulkhead("undo")).toMatchObject({ code: 0, stdout: "took back one, two from the work tree\n" });
  expect(stateOf(rig)).toBe(before);
  expect(applied()).toEqual([]);
  await endEarly(dieAfter);
  expect(bulkhead("apply", "-y").code).toBe(0);
  expect(rig.sh("git status --porcelain")).toBe(WHOLE);
  expect(applied()).toHaveLength(1);
  expect(bulkhead("undo").code).toBe(0);
  expect(stateOf(rig)).toBe(before);
});

test("ended between the last file and the log: undo knows of it all the same", async () => {
  const before = stateOf(rig);
  await endEarly(null);
  expect(rig.sh("git status --porcelain")).toBe(WHOLE);
  expect(bulkhead("undo")).toMatchObject({ code: 0, stdout: "took back one, two from the work tree\n" });
  expect(stateOf(rig)).toBe(before);
  expect(applied()).toMatchObject([{ isUndone: true }]);
  await endEarly(null);
  const again = bulkhead("apply", "-y");
  expect(again.code).toBe(1);
  expect(again.stderr).toContain("is whole, and logged now");
  expect(applied()).toMatchObject([{ isUndone: true }, { isUndone: false }]);
});

test("an undo that ended early is logged by the next command", async () => {
  const before = stateOf(rig);
  expect(bulkhead("apply", "-y").code).toBe(0);
  const [first] = applied();
  await endEarly(null, first?.undo);
  expect(stateOf(rig)).toBe(before);
  expect(bulkhead("undo").code).toBe(0);
  expect(applied()).toMatchObject([{ isUndone: true }]);
  expect(bulkhead("apply", "-y").code).toBe(0);
  const second = applied()[1];
  await endEarly(2, second?.undo);
  expect(bulkhead("undo").code).toBe(0);
  expect(stateOf(rig)).toBe(before);
  expect(applied()).toMatchObject([{ isUndone: true }, { isUndone: true }]);
  expect(bulkhead("undo")).toMatchObject({ code: 1, stderr: expect.stringContaining("nothing of run") });
});

test("what the person changed after the kill is named and kept", async () => {
  await endEarly(3);
  const mine = "my own words\n";
  rig.sh(`printf '${mine.trim()}\\n' > f2; echo more >> a.txt`);
  const { code, stderr } = bulkhead("undo");
  expect(code).toBe(1);
  expect(stderr).toContain("a.txt");
  expect(existsSync(join(rig.repository, "f2")) && readFileSync(join(rig.repository, "f2"), "utf8")).toBe(
    mine,
  );
});

test("HEAD has it all already: said, not logged", async () => {
  const tree = await gitText(rig.store.gitDir, ["rev-parse", `${patches[1]?.commit}^{tree}`]);
  expect(bulkhead("apply", "-y").code).toBe(0);
  rig.sh("git commit -q -m took");
  expect(rig.sh("git rev-parse HEAD^{tree}").trim()).toBe(tree);
  const again = bulkhead("apply", "-y");
  expect(again).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("your HEAD has all of it already"),
  });
  expect(applied()).toHaveLength(1);
});

test("a run that began with uncommitted changes: applied beside them, and as a branch without them", async () => {
  const dirty = await rig.patch("dirty", "echo local >> b.txt; echo mine > mine");
  const task = await rig.patch("three", "echo 3 > f3; echo more >> a.txt", dirty.commit);
  const begun = submitted([sampleTask("three")]);
  if (begun.type !== "run-submitted") throw new Error("not the beginning of a run");
  const later = runIdSchema.parse("20261130-150000-aaaaaa");
  const settings = { ...begun.settings, repository: rig.repository, runId: later, baseCommit: dirty.commit };
  const patch = { ...samplePatch("three", [["f", 1, 0]]), parent: task.parent, commit: task.commit };
  const store = openEventStore(databasePath(stateDir), { nowMs: () => 1_800_000_000_000 });
  store.append(later, [
    { ...begun, settings: { ...settings, headCommit: rig.base } },
    succeeded("three", patch),
  ]);
  store.close();
  rig.sh("echo local >> b.txt; echo mine > mine");
  expect(bulkhead("apply", later, "-y").code).toBe(0);
  expect(rig.sh("git status --porcelain")).toBe("M  a.txt\n M b.txt\nA  f3\n?? mine\n");
  expect(bulkhead("undo", later).code).toBe(0);
  expect(bulkhead("apply", later, "--branch", "x", "-y")).toMatchObject({ code: 0, stderr: "" });
  expect(rig.sh("git diff --name-only main x; git log --format=%s main..x")).toBe("a.txt\nf3\nDo three\n");
  expect(rig.sh("git status --porcelain")).toBe(" M b.txt\n?? mine\n");
});
