/** What a patch could try against the person who applies it: attributes that call their filters, objects no importer would have made. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { applyPatches } from "../../../src/workspace/apply-patches.ts";
import { diffPatch } from "../../../src/workspace/diff-patches.ts";
import { gitText } from "../../../src/workspace/git.ts";
import { integratePatches, type PatchToIntegrate } from "../../../src/workspace/integrate-patches.ts";
import { undoApply } from "../../../src/workspace/undo-apply.ts";
import { type ApplyRig, createApplyRig, type RigOptions, stateOf } from "./apply-rig.ts";

const rigs: ApplyRig[] = [];
afterEach(() => {
  for (const rig of rigs.splice(0)) rig.dispose();
});

async function rigWith(options?: RigOptions): Promise<ApplyRig> {
  const rig = await createApplyRig(options);
  rigs.push(rig);
  return rig;
}

async function integrate(rig: ApplyRig, patches: readonly PatchToIntegrate[]) {
  const result = await integratePatches(rig.store.gitDir, rig.base, patches);
  if (!result.ok) throw new Error("conflict");
  return result.value;
}

function apply(rig: ApplyRig, change: { parent: string; commit: string }, branch: string | null = null) {
  const { store, repository, journalDir } = rig;
  return applyPatches({ store, repository, journalDir, integrated: change, branch, dryRun: false });
}

function undo(rig: ApplyRig, text: string) {
  const { repository, journalDir } = rig;
  return undoApply({ repository, journalDir, target: "worktree", undo: text });
}

/** A filter that leaves a mark when it runs and keeps the content. */
const CANARY = `
for k in clean smudge; do git config filter.evil.$k 'touch ../canary-'$k'; cat'; done; git config filter.evil.required true
printf '#!/bin/sh\\ntouch "${"$"}0-ran"; exit 1\\n' > ../process; chmod +x ../process`;

function canaries(rig: ApplyRig): string[] {
  return ["canary-clean", "canary-smudge", "process-ran"].filter((name) => existsSync(join(rig.root, name)));
}

/** Dies in a process of its own after `dieAfter` moved files. */
function die(rig: ApplyRig, change: { parent: string; commit: string }, dieAfter: number): void {
  const { repository, journalDir } = rig;
  const order = { cacheDir: join(rig.root, "cache"), repository, journalDir, integrated: change, dieAfter };
  const script = new URL("./apply-child.ts", import.meta.url).pathname;
  expect(spawnSync(process.execPath, [script, JSON.stringify(order)]).signal).toBe("SIGKILL");
}

describe("attributes that a patch brings", () => {
  test.each([
    ["a new .gitattributes", "echo '* filter=evil' > .gitattributes"],
    ["one in a new directory", "mkdir sub; echo '* filter=evil' > sub/.gitattributes; echo s > sub/s"],
    ["a changed one", "echo '* filter=evil' >> dir/.gitattributes; echo s > dir/s"],
  ])("%s calls no filter of the person's: applied, killed half-way, and undone", async (_, attributes) => {
    const rig = await rigWith({
      files: "mkdir dir; echo '# none' > dir/.gitattributes; echo 1 > dir/one; echo a > a.txt",
      setup: CANARY,
    });
    const before = rig.sh("git ls-files -s; md5sum a.txt dir/one");
    const change = await integrate(rig, [
      await rig.patch("t1", `${attributes}; echo more >> a.txt; echo new > new; echo 2 >> dir/one`),
    ]);
    const applied = await apply(rig, change);
    if (!applied.ok) throw new Error(applied.error.reason);
    expect(canaries(rig)).toEqual([]);
    expect(rig.sh("git -c filter.evil.clean= -c filter.evil.required=false write-tree").trim()).toBe(
      change.tree,
    );
    expect(await undo(rig, applied.value.undo)).toEqual({ ok: true, value: null });
    expect(rig.sh("git ls-files -s; md5sum a.txt dir/one")).toBe(before);
    die(rig, change, 2);
    expect(await apply(rig, change)).toMatchObject({ ok: true });
    expect(canaries(rig)).toEqual([]);
  });

  test("a long-running filter is not called either", async () => {
    const rig = await rigWith({ setup: `${CANARY}; git config filter.evil.process "$PWD/../process"` });
    const change = await integrate(rig, [
      await rig.patch("t1", "echo '* filter=evil' > .gitattributes; echo n > new"),
    ]);
    const applied = await apply(rig, change);
    expect(applied).toMatchObject({ ok: true });
    if (applied.ok) expect(await undo(rig, applied.value.undo)).toMatchObject({ ok: true });
    expect(canaries(rig)).toEqual([]);
  });

  test("line ends: undo gives back the very bytes, also after a kill", async () => {
    const rig = await rigWith();
    const bytes = () => rig.sh("find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 md5sum");
    const [state, before] = [stateOf(rig), bytes()];
    const change = await integrate(rig, [
      await rig.patch(
        "t1",
        "echo '*.txt text eol=crlf' > .gitattributes; echo x >> a.txt; echo y >> b.txt; echo z > z.txt",
      ),
    ]);
    const applied = await apply(rig, change);
    if (!applied.ok) throw new Error(applied.error.reason);
    expect(readFileSync(join(rig.repository, "z.txt"), "latin1")).toBe("z\r\n");
    expect(await undo(rig, applied.value.undo)).toEqual({ ok: true, value: null });
    expect(bytes()).toBe(before);
    expect(stateOf(rig)).toBe(state);
    for (const dieAfter of [1, 2, 3]) {
      die(rig, change, dieAfter);
      const again = await apply(rig, change);
      if (!again.ok) throw new Error(again.error.reason);
      await undo(rig, again.value.undo);
      expect(bytes()).toBe(before);
    }
  });
});

describe("objects that no importer would have made", () => {
  /** A patch whose tree holds one entry more, written object by object. */
  async function withEntry(
    rig: ApplyRig,
    entry: string,
    content: string,
    inside?: string,
  ): Promise<PatchToIntegrate> {
    const git = (args: readonly string[], input?: string) =>
      gitText(rig.store.gitDir, args, input === undefined ? {} : { input });
    const blob = await git(["hash-object", "-w", "--stdin"], content);
    const [mode = "", name = ""] = entry.split(" ");
    const listing = await git(["ls-tree", rig.base]);
    let line = `${mode} ${mode === "160000" ? "commit" : "blob"} ${mode === "160000" ? rig.base : blob}\t${name}`;
    if (inside !== undefined) {
      line = `040000 tree ${await git(["mktree", "--missing"], `${line}\n`)}\t${inside}`;
    }
    const tree = await git(["mktree", "--missing"], `${listing}\n${line}\n`);
    const identity = {
      GIT_AUTHOR_NAME: "x",
      GIT_AUTHOR_EMAIL: "x",
      GIT_COMMITTER_NAME: "x",
      GIT_COMMITTER_EMAIL: "x",
    };
    const commit = await gitText(rig.store.gitDir, ["commit-tree", "-p", rig.base, "-m", "evil", tree], {
      env: identity,
    });
    return { ...(await rig.patch("evil", "true")), commit };
  }

  test.each([
    ["100644 config", "[core]\n\tfsmonitor = touch ../canary\n", ".git"],
    ["100755 pre-commit", "#!/bin/sh\n", ".GIT"],
    ["100644 x", "x", "git~1"],
    ["100644 up", "x", ".."],
    ["120000 .gitmodules", "a.txt", undefined],
    ["120000 away", "/etc", undefined],
    ["120000 away", "../../etc", undefined],
    ["160000 module", "", undefined],
  ])("%s in %s is refused, for the work tree and for a branch", async (entry, content, inside) => {
    const rig = await rigWith();
    const before = stateOf(rig);
    const change = await integrate(rig, [await withEntry(rig, entry, content, inside)]);
    for (const branch of [null, "b"]) {
      expect(await apply(rig, change, branch)).toMatchObject({ ok: false, error: { reason: "unsafe" } });
    }
    expect(stateOf(rig)).toBe(before);
    expect(rig.sh("git branch --format='%(refname:short)'")).toBe("main\n");
    expect(existsSync(join(rig.root, "up"))).toBe(false);
  });

  test("a branch is refused for what only a commit in the middle holds", async () => {
    const rig = await rigWith();
    const first = await rig.patch("one", "ln -s /etc out; echo 1 > f");
    const second = await rig.patch("two", "rm out", first.commit);
    const change = await integrate(rig, [first, second]);
    expect(await apply(rig, change, "b")).toEqual({ ok: false, error: { reason: "unsafe", files: ["out"] } });
    expect(await apply(rig, change)).toMatchObject({ ok: true, value: { files: ["f"] } });
  });
});

test("names are shown as they are written, and renames as renames", async () => {
  const rig = await rigWith();
  const patch = await rig.patch("t1", "mv größe.txt länge.txt; chmod +x a.txt; rm b.txt; echo n > neu");
  const show = async (format: "patch" | "stat" | "names") =>
    (await diffPatch(rig.store.gitDir, patch, { format })).toString("utf8");
  expect(await show("stat")).toContain("größe.txt => länge.txt");
  expect(await show("stat")).toContain("a.txt (mode +x)");
  expect(await show("names")).toBe("a.txt\nb.txt\ngröße.txt\nlänge.txt\nneu\n");
  const text = await show("patch");
  rig.sh(`git apply --index - <<'END'\n${text}END`);
  expect(rig.sh("git write-tree").trim()).toBe(
    await gitText(rig.store.gitDir, ["rev-parse", `${patch.commit}^{tree}`]),
  );
});
