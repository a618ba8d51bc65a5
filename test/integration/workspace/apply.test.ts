import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  type ApplyRequest,
  applyPatches,
  explainApplyRefusal,
} from "../../../src/workspace/apply-patches.ts";
import { type ApplyRig, type RigOptions, stateOf, writeUserFile } from "./apply-rig.ts";

import { apply, integrated, rigWith, treeInPlace, undo } from "./apply-steps.ts";

describe("apply to the work tree", () => {
  test("every kind of change is staged, and undo restores all", async () => {
    const rig = await rigWith();
    const before = stateOf(rig);
    const change = await integrated(rig);
    const applied = await apply(rig, change);
    expect(applied).toMatchObject({
      ok: true,
      value: { target: "worktree", headBefore: rig.base, tree: change.tree },
    });
    expect(treeInPlace(rig)).toEqual({ tree: change.tree, unstaged: "" });
    expect(rig.sh("git rev-parse HEAD").trim()).toBe(rig.base);
    expect(lstatSync(join(rig.repository, "new/up")).isSymbolicLink()).toBe(true);
    expect(existsSync(join(rig.repository, ".git/index.lock"))).toBe(false);
    if (applied.ok) expect(await undo(rig, applied.value.undo)).toEqual({ ok: true, value: null });
    expect(stateOf(rig)).toBe(before);
    if (applied.ok) expect(await undo(rig, applied.value.undo)).toEqual({ ok: true, value: null });
  });

  test("a dry run changes nothing, and says what would be refused", async () => {
    const rig = await rigWith();
    const change = await integrated(rig);
    const before = stateOf(rig);
    expect(await apply(rig, change, { dryRun: true })).toMatchObject({ ok: true });
    expect(stateOf(rig)).toBe(before);
    writeUserFile(rig, "a.txt", "mine\n");
    const refused = await apply(rig, change, { dryRun: true });
    expect(refused).toEqual({ ok: false, error: { reason: "dirty", files: ["a.txt"] } });
    if (!refused.ok) expect(explainApplyRefusal(refused.error).message).toContain("a.txt");
  });

  test("HEAD moved on: merged three-way, other changes of the user stay", async () => {
    const rig = await rigWith();
    const change = await integrated(rig, "sed -i 's/two/TWO/' a.txt; echo new > n.txt");
    rig.sh(
      "sed -i 's/eight/EIGHT/' a.txt; echo c > c.txt; git add -A; git commit -q -m mine; echo dirty >> b.txt; echo u > untracked",
    );
    const applied = await apply(rig, change);
    expect(applied.ok && applied.value.files).toEqual(["a.txt", "n.txt"]);
    expect(readFileSync(join(rig.repository, "a.txt"), "utf8")).toBe(
      "one\nTWO\nthree\nfour\nfive\nsix\nseven\nEIGHT\n",
    );
    expect(rig.sh("git status --porcelain -uall")).toBe("M  a.txt\n M b.txt\nA  n.txt\n?? untracked\n");
    if (applied.ok) await undo(rig, applied.value.undo);
    expect(rig.sh("git status --porcelain -uall")).toBe(" M b.txt\n?? untracked\n");
  });

  test("a conflict with the user's commits names the files", async () => {
    const rig = await rigWith();
    const change = await integrated(rig, "sed -i 's/two/TWO/' a.txt; echo x > b.txt");
    rig.sh("sed -i 's/two/zwei/' a.txt; git commit -q -a -m mine");
    const before = stateOf(rig);
    expect(await apply(rig, change)).toEqual({ ok: false, error: { reason: "conflict", files: ["a.txt"] } });
    expect(stateOf(rig)).toBe(before);
  });

  test.each([
    ["an edit", "echo mine >> a.txt", "dirty", ["a.txt"]],
    ["a staged edit", "echo mine >> a.txt; git add a.txt", "dirty", ["a.txt"]],
    [
      "a staged edit taken back in the work tree",
      "cp a.txt k; echo m >> a.txt; git add a.txt; mv k a.txt",
      "dirty",
      ["a.txt"],
    ],
    ["a deleted file", "rm bin", "dirty", ["bin"]],
    ["same size and time", "cp -p bin k; printf '\\0\\1\\3' > bin; touch -r k bin; rm k", "dirty", ["bin"]],
    ["an untracked file", "echo mine > empty", "untracked", ["empty"]],
    ["an ignored file", "echo empty >> .git/info/exclude; echo mine > empty", "untracked", ["empty"]],
    [
      "an untracked file in a directory that becomes a file",
      "echo mine > dir/mine",
      "untracked",
      ["dir/mine"],
    ],
    [
      "an untracked link in place of a directory",
      "ln -s /tmp new",
      "untracked",
      ['new/deep/odd\nname "q"', "new/up"],
    ],
    [
      "a tracked directory replaced by a link",
      "cp -r dir /tmp/$$; rm -r dir; ln -s /tmp/$$ dir",
      "dirty",
      ["dir/one", "dir/sub/two"],
    ],
    ["an index lock", "touch .git/index.lock", "index-locked", []],
  ])("refuses over %s", async (_name, script, reason, files) => {
    const rig = await rigWith();
    const change = await integrated(rig);
    rig.sh(script);
    const before = stateOf(rig);
    const refused = await apply(rig, change);
    expect(refused.ok).toBe(false);
    if (!refused.ok) {
      expect(refused.error.reason).toBe(reason);
      expect(new Set(refused.error.files)).toEqual(new Set(files));
    }
    expect(stateOf(rig)).toBe(before);
  });

  test("refuses an unborn HEAD, submodules and links that lead outside", async () => {
    const rig = await rigWith();
    const gitlink = `git init -q s; cd s; git -c user.name=n -c user.email=n@n commit -q --allow-empty -m s`;
    expect(await apply(rig, await integrated(rig, gitlink))).toEqual({
      ok: false,
      error: { reason: "unsafe", files: ["s"] },
    });
    expect(await apply(rig, await integrated(rig, "ln -s ../../etc out"))).toEqual({
      ok: false,
      error: { reason: "unsafe", files: ["out"] },
    });
    expect(await apply(rig, await integrated(rig, "ln -s /etc out"), { branch: "b" })).toEqual({
      ok: false,
      error: { reason: "unsafe", files: ["out"] },
    });
    const change = await integrated(rig, "echo 1 > f");
    rig.sh("git checkout -q --orphan other; git rm -q -rf .");
    expect(await apply(rig, change)).toEqual({ ok: false, error: { reason: "unborn", files: [] } });
  });

  test("undo refuses what was changed since, and works after a commit", async () => {
    const rig = await rigWith();
    const applied = await apply(rig, await integrated(rig));
    if (!applied.ok) throw new Error("refused");
    rig.sh("cp -p a.txt keep; echo more >> a.txt; echo x > empty");
    expect(await undo(rig, applied.value.undo)).toEqual({
      ok: false,
      error: { reason: "changed", files: ["a.txt", "empty"] },
    });
    rig.sh("mv keep a.txt; : > empty; git commit -q -m took");
    expect(await undo(rig, applied.value.undo)).toEqual({ ok: true, value: null });
    expect(rig.sh("git write-tree").trim()).toBe(rig.sh(`git rev-parse ${rig.base}^{tree}`).trim());
    expect(await undo(rig, "worktree:0000000000000000")).toEqual({
      ok: false,
      error: { reason: "not-found", files: [] },
    });
  });

  test("applies twice and undoes twice", async () => {
    const rig = await rigWith();
    const before = stateOf(rig);
    const first = await apply(rig, await integrated(rig, "echo 1 > f1"));
    const second = await apply(rig, await integrated(rig, "echo 2 > f2"));
    if (!first.ok || !second.ok) throw new Error("refused");
    expect(treeInPlace(rig).unstaged).toBe("");
    expect(rig.sh("git diff --cached --name-only")).toBe("f1\nf2\n");
    await undo(rig, first.value.undo);
    await undo(rig, second.value.undo);
    expect(stateOf(rig)).toBe(before);
  });

  test.each<[string, RigOptions]>([
    ["core.autocrlf=true", { setup: "git config core.autocrlf true; rm -rf * ; git checkout -q -f" }],
    ["core.fileMode=false", { setup: "git config core.fileMode false; chmod +x a.txt" }],
    [
      "failing hooks",
      {
        setup:
          "mkdir -p .git/hooks; for h in pre-commit post-checkout post-index-change reference-transaction; do printf '#!/bin/sh\\ntouch ../hook-ran; exit 1\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done",
      },
    ],
    ["commit.gpgsign", { setup: "git config commit.gpgsign true; git config gpg.program false" }],
    ["a linked work tree", { worktree: "git worktree add -q ../linked -b linked; cd ../linked; pwd" }],
    ["a split index", { setup: "git config core.splitIndex true; git update-index --split-index" }],
    [
      "safecrlf, whitespace and attributes of the user",
      {
        setup:
          "git config core.safecrlf true; git config apply.whitespace error; echo '*.txt text eol=crlf' > .git/info/attributes; rm *.txt; git checkout -q -f",
      },
    ],
    [
      "a clean and smudge filter of the user",
      {
        setup:
          "git config filter.rot.clean 'tr a-z n-za-m'; git config filter.rot.smudge 'tr a-z n-za-m'; echo '*.txt filter=rot' > .git/info/attributes; rm *.txt; git checkout -q -f",
      },
    ],
    ["another branch name and a detached HEAD", { setup: "git checkout -q --detach" }],
  ])("works with %s", async (name, options) => {
    const rig = await rigWith(options);
    // Modes that git is told not to look at are git's to choose.
    const state = () =>
      name === "core.fileMode=false" ? stateOf(rig).replaceAll(/ f \d+ /g, " f ") : stateOf(rig);
    const before = state();
    const change = await integrated(rig);
    // The test's own git runs them.
    rmSync(join(rig.root, "hook-ran"), { force: true });
    const applied = await apply(rig, change);
    expect(applied).toMatchObject({ ok: true });
    expect(existsSync(join(rig.root, "hook-ran"))).toBe(false);
    expect(treeInPlace(rig)).toEqual({ tree: change.tree, unstaged: "" });
    if (applied.ok) expect(await undo(rig, applied.value.undo)).toEqual({ ok: true, value: null });
    expect(state()).toBe(before);
  });

  test("1,500 files", async () => {
    const rig = await rigWith();
    const change = await integrated(
      rig,
      "for i in $(seq 1500); do mkdir -p m$((i % 20)); echo $i > m$((i % 20))/f$i; done",
    );
    const started = performance.now();
    const applied = await apply(rig, change);
    console.log(`1,500 files applied in ${Math.round(performance.now() - started)} ms`);
    expect(applied.ok && applied.value.files.length).toBe(1500);
    expect(treeInPlace(rig)).toEqual({ tree: change.tree, unstaged: "" });
  });
});

describe("ownership", () => {
  test("files belong to the owner of the repository, also where root applies", async () => {
    // Root has to have said that it trusts the repository, as git asks for.
    const config = mkdtempSync(join(tmpdir(), "bh-config-"));
    onTestFinished(() => rmSync(config, { recursive: true }));
    writeFileSync(join(config, "gitconfig"), "[safe]\n\tdirectory = *\n");
    vi.stubEnv("GIT_CONFIG_GLOBAL", join(config, "gitconfig"));
    const rig = await rigWith({ uid: 1234 });
    const change = await integrated(rig);
    const applied = await apply(rig, change);
    expect(applied).toMatchObject({ ok: true });
    const foreign = execFileSync("find", [rig.repository, "!", "-uid", "1234"], { encoding: "utf8" });
    expect(foreign).toBe("");
    expect(treeInPlace(rig)).toEqual({ tree: change.tree, unstaged: "" });
    expect(statSync(join(rig.repository, "new/deep")).mode & 0o777).toBe(0o755);
    if (applied.ok) expect(await undo(rig, applied.value.undo)).toEqual({ ok: true, value: null });
    expect(execFileSync("find", [rig.repository, "!", "-uid", "1234"], { encoding: "utf8" })).toBe("");
  });
});

describe("killed half-way", () => {
  /** Applies (or undoes) in a child that kills itself after `dieAfter` moved files. */
  function die(rig: ApplyRig, change: ApplyRequest["integrated"], dieAfter: number, undoText?: string): void {
    const { repository, journalDir } = rig;
    const order = { cacheDir: join(rig.root, "cache"), repository, journalDir, integrated: change, dieAfter };
    const script = new URL("./apply-child.ts", import.meta.url).pathname;
    const child = spawnSync(process.execPath, [script, JSON.stringify({ ...order, undo: undoText })], {
      encoding: "utf8",
    });
    expect(`${child.stdout}${child.stderr}`).toBe("");
    expect(child.signal).toBe("SIGKILL");
  }

  test.each([1, 4, 9, 15])("after %i files: the next apply is whole", async (dieAfter) => {
    const rig = await rigWith();
    const before = stateOf(rig);
    const change = await integrated(rig);
    die(rig, change, dieAfter);
    expect(stateOf(rig)).not.toBe(before);
    const applied = await apply(rig, change);
    expect(applied).toMatchObject({ ok: true });
    expect(treeInPlace(rig)).toEqual({ tree: change.tree, unstaged: "" });
    if (applied.ok) await undo(rig, applied.value.undo);
    expect(stateOf(rig)).toBe(before);
  });

  test("undo after a killed apply, and after a killed undo", async () => {
    const rig = await rigWith();
    const before = stateOf(rig);
    const change = await integrated(rig);
    die(rig, change, 5);
    const id = rig.journalDir;
    const name = execFileSync("ls", [id], { encoding: "utf8" }).trim().replace(".json", "");
    expect(await undo(rig, `worktree:${name}`)).toEqual({ ok: true, value: null });
    expect(stateOf(rig)).toBe(before);
    const applied = await apply(rig, change);
    if (!applied.ok) throw new Error("refused");
    die(rig, change, 6, applied.value.undo);
    expect(await undo(rig, applied.value.undo)).toEqual({ ok: true, value: null });
    expect(stateOf(rig)).toBe(before);
  });

  test("what the user changed after the crash is not overwritten", async () => {
    const rig = await rigWith();
    const change = await integrated(rig, "echo 1 >> a.txt; echo 2 >> b.txt; echo 3 > c.txt");
    die(rig, change, 1);
    writeUserFile(rig, "b.txt", "my own\n");
    expect(await apply(rig, change)).toEqual({
      ok: false,
      error: { reason: "interrupted", files: ["b.txt"] },
    });
    expect(readFileSync(join(rig.repository, "b.txt"), "utf8")).toBe("my own\n");
    rig.sh("git checkout -q HEAD -- b.txt 2>/dev/null || git show HEAD:b.txt > b.txt");
    expect(await apply(rig, change)).toMatchObject({ ok: true });
    expect(treeInPlace(rig)).toEqual({ tree: change.tree, unstaged: "" });
  });

  test("an error half-way is taken back at once", async () => {
    const rig = await rigWith();
    const before = stateOf(rig);
    const { store, repository, journalDir } = rig;
    const change = await integrated(rig);
    let moved = 0;
    const failing = applyPatches({
      store,
      repository,
      journalDir,
      integrated: change,
      branch: null,
      dryRun: false,
      onMoved: () => {
        moved += 1;
        if (moved === 7) throw new Error("the disk is full");
      },
    });
    await expect(failing).rejects.toThrow("the disk is full");
    expect(stateOf(rig)).toBe(before);
  });
});
