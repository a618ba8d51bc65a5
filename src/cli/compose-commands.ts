/** What the verbs about finished work need: the log, the object store's patches, the user's repository. Loaded as far as used. */
import type { RunSettings } from "../model/run.ts";
import { RunnerError } from "../model/runner-error.ts";
import { openEventStore } from "../store/sqlite/sqlite-event-store.ts";
import { findSupervisor } from "../supervisor/reach-supervisor.ts";
import { ok } from "../util/result.ts";
import { quotePath } from "../util/sanitize-text.ts";
import { databasePath } from "../util/state-layout.ts";
import type { ObjectStore } from "../workspace/workspace.ts";
import type { CommandDeps, CommitRange, RecoveredApply } from "./command-deps.ts";
import type { CliContext } from "./context.ts";
import { settleApplies } from "./settle-applies.ts";

/** Builds the dependencies of status, logs, graph, diff, apply, undo, cancel and gc. */
export function composeCommands(context: CliContext): CommandDeps {
  const { stateDir } = context;
  const storeOf = async (settings: RunSettings): Promise<ObjectStore> => {
    const { openObjectStore } = await import("../workspace/object-store.ts");
    return openObjectStore({ cacheDir: context.cacheDir, repository: settings.repository });
  };
  const log: Pick<CommandDeps, "openStore" | "connectSupervisor"> = {
    openStore: (readOnly) =>
      openEventStore(databasePath(stateDir), readOnly ? { readOnly, readOnlyIfMissing: "empty" } : {}),
    connectSupervisor: () => findSupervisor(stateDir),
  };
  return {
    ...log,
    loadPlan: (path) => loadTasks(context, path),
    async diffPatch(settings, range, options) {
      const { diffPatch } = await import("../workspace/diff-patches.ts");
      return diffPatch((await storeOf(settings)).gitDir, range, options);
    },
    async integratePatches(settings, patches) {
      const { integratePatches } = await import("../workspace/integrate-patches.ts");
      const { readIdentity } = await import("../workspace/read-identity.ts");
      const { gitDir } = await storeOf(settings);
      const committer = await readIdentity(settings.repository);
      const integrated = await integratePatches(gitDir, settings.baseCommit, patches, committer);
      const taskIds = patches.map(({ taskId }) => taskId);
      return integrated.ok ? ok({ ...integrated.value, taskIds }) : integrated;
    },
    async applyPatches(settings, integrated, options) {
      const { applyJournalDir, applyPatches, explainApplyRefusal } = await import(
        "../workspace/apply-patches.ts"
      );
      if (!options.dryRun) refuseIfWhole(await settleApplies(log, settings, stateDir), settings);
      const store = await storeOf(settings);
      const { repository, runId } = settings;
      const range = options.branch === null ? integrated : await fromCommitted(store, settings, integrated);
      const run = { runId, taskIds: integrated.taskIds ?? [] };
      const journalDir = applyJournalDir(stateDir);
      const applied = await applyPatches({
        store,
        repository,
        integrated: range,
        journalDir,
        run,
        ...options,
      });
      if (applied.ok) return applied.value;
      const { message, hint } = explainApplyRefusal(applied.error);
      throw new RunnerError("apply-refused", message, { data: { ...applied.error }, hint });
    },
    recoverApplies: (settings) => settleApplies(log, settings, stateDir),
    async undoApply(settings, applied) {
      const { undoApply } = await import("../workspace/undo-apply.ts");
      const { applyJournalDir, explainApplyRefusal } = await import("../workspace/apply-patches.ts");
      const { target, undo } = applied;
      const journalDir = applyJournalDir(stateDir);
      const undone = await undoApply({ repository: settings.repository, target, undo, journalDir });
      if (undone.ok) return;
      const { message, hint } = explainApplyRefusal(undone.error);
      throw new RunnerError("undo-refused", message, { data: { ...undone.error }, hint });
    },
    async gc({ dryRun, olderThanMs }) {
      const { sweep } = await import("./compose-run.ts");
      return sweep(context, { dryRun, olderThanMs });
    },
  };
}

/** A branch begins at a commit of the person's, also where the run began with uncommitted changes on top of it. */
async function fromCommitted(
  store: ObjectStore,
  { repository, headCommit }: RunSettings,
  integrated: CommitRange,
): Promise<CommitRange> {
  if (headCommit === undefined) return integrated;
  const { moveOnto } = await import("../workspace/integrate-patches.ts");
  await store.importCommit(repository, headCommit, 1);
  const moved = await moveOnto(store.gitDir, headCommit, integrated);
  if (moved.ok) return moved.value;
  const files = moved.error.map((file) => quotePath(file));
  throw new RunnerError(
    "apply-refused",
    `the patches build on changes that were not committed when the run began, in ${files.slice(0, 10).join(", ")}`,
    { data: { files: moved.error }, hint: "commit those changes and apply without --branch" },
  );
}

/** An apply that was killed after its last file and before its log entry leaves nothing to do but to say so. */
function refuseIfWhole(recovered: readonly RecoveredApply[], { runId }: RunSettings): void {
  const whole = recovered.find((one) => one.runId === runId && one.outcome === "completed");
  if (whole === undefined) return;
  throw new RunnerError(
    "apply-refused",
    `an earlier apply of ${whole.taskIds.join(", ")} was ended before it was logged; it is whole, and logged now`,
    { data: { taskIds: whole.taskIds }, hint: `to take it back: bulkhead undo ${runId}` },
  );
}

/** Reads a plan to look at it. Throws RunnerError `plan-invalid` or `config-invalid`. */
async function loadTasks(context: CliContext, path: string): ReturnType<CommandDeps["loadPlan"]> {
  const { readPlan } = await import("../supervisor/run-plan.ts");
  const { locateRepository } = await import("../workspace/repository-state.ts");
  // Outside a repository there is no configuration; the plan can be looked at all the same.
  const repository = await locateRepository(context.cwd).catch(() => null);
  const { plan } = await readPlan(repository?.top ?? context.cwd, {
    plan: [path],
    cwd: context.cwd,
    stdin: context.stdin,
  });
  return plan.tasks;
}
