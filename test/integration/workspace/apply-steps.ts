import { afterEach } from "vitest";
import { type ApplyRequest, applyPatches } from "../../../src/workspace/apply-patches.ts";
import { integratePatches } from "../../../src/workspace/integrate-patches.ts";
import { undoApply } from "../../../src/workspace/undo-apply.ts";
import { type ApplyRig, createApplyRig, type RigOptions } from "./apply-rig.ts";

const rigs: ApplyRig[] = [];
afterEach(() => {
  for (const rig of rigs.splice(0)) rig.dispose();
});

export async function rigWith(options?: RigOptions): Promise<ApplyRig> {
  const rig = await createApplyRig(options);
  rigs.push(rig);
  return rig;
}

/** A change of every kind. */
export const ALL_KINDS = `
sed -i 's/two/TWO/' a.txt; rm b.txt; rm -r dir; echo file > dir; printf '\\377\\0\\1' > bin; chmod -x run.sh; rm link; echo l > link
mkdir -p new/deep; echo n > $'new/deep/odd\\nname "q"'; ln -s ../a.txt new/up; echo y > 'größe.txt'; echo raw > $'in\\xffvalid'; : > empty; mv .gitignore renamed
`;

export async function integrated(
  rig: ApplyRig,
  script = ALL_KINDS,
): Promise<{ parent: string; commit: string; tree: string }> {
  const result = await integratePatches(rig.store.gitDir, rig.base, [await rig.patch("t1", script)]);
  if (!result.ok) throw new Error("the patch conflicts with nothing, yet was refused");
  return result.value;
}

export function apply(
  rig: ApplyRig,
  change: ApplyRequest["integrated"],
  options: Partial<Pick<ApplyRequest, "branch" | "dryRun">> = {},
): ReturnType<typeof applyPatches> {
  const { store, repository, journalDir } = rig;
  return applyPatches({
    store,
    repository,
    journalDir,
    integrated: change,
    branch: null,
    dryRun: false,
    ...options,
  });
}

export function undo(rig: ApplyRig, undoText: string, target = "worktree"): ReturnType<typeof undoApply> {
  const { repository, journalDir } = rig;
  return undoApply({ repository, journalDir, target, undo: undoText });
}

/** Tree of the index, and whether the work tree equals it. */
export function treeInPlace(rig: ApplyRig): { tree: string; unstaged: string } {
  return {
    tree: rig.sh("git write-tree").trim(),
    unstaged: rig.sh("git diff --name-only; git ls-files -o --exclude-standard"),
  };
}
