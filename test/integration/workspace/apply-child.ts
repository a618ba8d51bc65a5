/** Applies or undoes in a process of its own, and kills itself after the given number of moved files. */
import { type ApplyRequest, applyPatches } from "../../../src/workspace/apply-patches.ts";
import { openObjectStore } from "../../../src/workspace/object-store.ts";
import { undoApply } from "../../../src/workspace/undo-apply.ts";

interface Order {
  readonly cacheDir: string;
  readonly repository: string;
  readonly journalDir: string;
  readonly integrated: { readonly parent: string; readonly commit: string };
  readonly undo?: string;
  readonly run?: NonNullable<ApplyRequest["run"]>;
  readonly dieAfter: number;
}

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
let moved = 0;
function onMoved(): void {
  moved += 1;
  if (moved === order.dieAfter) process.kill(process.pid, "SIGKILL");
}
const { repository, journalDir, integrated } = order;
const run = order.run === undefined ? {} : { run: order.run };
if (order.undo === undefined) {
  const store = await openObjectStore({ cacheDir: order.cacheDir, repository });
  await applyPatches({
    store,
    repository,
    integrated,
    branch: null,
    dryRun: false,
    journalDir,
    ...run,
    onMoved,
  });
} else {
  await undoApply({ repository, target: "worktree", undo: order.undo, journalDir, onMoved });
}
process.stdout.write("not killed");
