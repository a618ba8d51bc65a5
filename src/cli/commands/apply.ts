import type { Command } from "commander";
import { RunnerError } from "../../model/runner-error.ts";
import type { RunView } from "../../observe/run-view.ts";
import { quotePath, sanitizeForTerminal } from "../../util/sanitize-text.ts";
import { parseAllowed, refuseUnallowed } from "../allow-risks.ts";
import { type ChosenPatches, choosePatches } from "../choose-patches.ts";
import type { AppliedPatches, CommandDeps, CommitRange } from "../command-deps.ts";
import { confirm } from "../confirm.ts";
import { type CliContext, EXIT } from "../context.ts";
import { findRun, readRun, settingsOf } from "../find-run.ts";
import { recordEvent } from "../record-event.ts";
import { choosePalette } from "../render/palette.ts";
import { counted, describeTarget } from "../render/task-words.ts";
import { writeOut } from "../write-out.ts";

interface ApplyFlags {
  readonly branch?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
  readonly allow?: readonly string[];
}

/**
 * `bulkhead apply`: takes patches over into the user's repository, all or nothing, after a person has said so (row A13). Integration
 * happens in bulkhead's own object store first, so a conflict is found before anything of the user's is touched.
 */
export function registerApply(program: Command, context: CliContext, deps: CommandDeps): void {
  program
    .command("apply")
    .description("Take the patches of a run over into your repository")
    .argument("[RUN]", "run id, its beginning or end, or `latest`; the newest run where it is left out")
    .argument("[TASK...]", "only these tasks and what they depend on; all that succeeded where none is named")
    .option("--branch <NAME>", "make a branch of this name instead of changing the work tree")
    .option("--dry-run", "show what would change, change nothing")
    .option("-y, --yes", "do not ask")
    .option(
      "--allow <RULE,...>",
      "take patches with what falls under these rules: `secrets`, those that `diff` names, or `all`",
      parseAllowed,
    )
    .option("--json", "print JSON; needs --yes or --dry-run")
    .addHelpText(
      "after",
      "\nEither everything is taken over or nothing. `bulkhead undo` takes it back.\n\nExamples:\n  bulkhead apply --dry-run\n  bulkhead apply latest auth_refactor test_auth\n  bulkhead apply latest --branch agents/auth -y\n  bulkhead apply --allow ci-config,lock-file",
    )
    .action(async (run: string | undefined, ids: string[], flags: ApplyFlags) => {
      const view = readView(deps, run);
      const chosen = choosePatches(view, ids);
      refuseUnallowed(chosen, flags.allow ?? []);
      const integrated = await integrate(deps, view, chosen);
      const say = (text: string): Promise<boolean> =>
        flags.json === true ? Promise.resolve(true) : writeOut(context.stdout, text);
      if (integrated === null) {
        await (flags.json === true
          ? writeJson(context, chosen, null, flags)
          : say("nothing to apply: no task changed a file\n"));
        return;
      }
      if (flags.json === true && flags.yes !== true && flags.dryRun !== true) {
        throw new RunnerError("usage", "--json cannot ask", { hint: "add --yes or --dry-run" });
      }
      await say(await renderPreview(deps, context, view, chosen, integrated));
      const options = { branch: flags.branch ?? null, dryRun: flags.dryRun === true };
      if (!options.dryRun && flags.yes !== true) {
        const target = options.branch === null ? settingsOf(view).repository : `branch ${options.branch}`;
        if (!(await confirm(context, `Apply to ${target}?`))) {
          await say("nothing was applied\n");
          process.exitCode = EXIT.taskFailed;
          return;
        }
      }
      const applied = await deps.applyPatches(settingsOf(view), integrated, options);
      if (options.dryRun) {
        await (flags.json === true
          ? writeJson(context, chosen, null, flags)
          : say("it would apply cleanly; nothing was changed\n"));
        return;
      }
      await record(deps, view, chosen, applied);
      if (flags.json === true) await writeJson(context, chosen, applied, flags);
      else await say(renderDone(view, chosen, applied));
    });
}

function readView(deps: CommandDeps, run: string | undefined): RunView {
  const store = deps.openStore(true);
  try {
    return readRun(store, findRun(store, run));
  } finally {
    store.close();
  }
}

/** The chosen patches as one commit; null where there is nothing in them. Throws `apply-refused` on a conflict. */
async function integrate(
  deps: CommandDeps,
  view: RunView,
  chosen: ChosenPatches,
): Promise<CommitRange | null> {
  if (chosen.patches.length === 0) return null;
  const result = await deps.integratePatches(
    settingsOf(view),
    chosen.patches.map(({ taskId, patch }) => ({ taskId, parent: patch.parent, commit: patch.commit })),
  );
  if (result.ok) return result.value;
  const { taskId, files } = result.error;
  const shown = files.slice(0, 10).map((file) => sanitizeForTerminal(quotePath(file)));
  const more = files.length > shown.length ? ` and ${files.length - shown.length} more` : "";
  throw new RunnerError(
    "apply-refused",
    `the patch of ${taskId} conflicts with the ones before it in ${shown.join(", ")}${more}`,
    {
      data: { task: taskId, files },
      hint: `nothing was changed; apply the tasks one by one, or leave ${taskId} out`,
    },
  );
}

async function renderPreview(
  deps: CommandDeps,
  context: CliContext,
  view: RunView,
  chosen: ChosenPatches,
  integrated: CommitRange,
): Promise<string> {
  const palette = choosePalette(context.env, context.stdout.isTTY === true);
  const stat = await deps.diffPatch(settingsOf(view), integrated, { format: "stat", color: false });
  const ids = chosen.patches.map(({ taskId }) => taskId);
  const notes = [
    chosen.brought.length === 0 ? "" : `with what they depend on: ${chosen.brought.join(", ")}`,
    chosen.empty.length === 0 ? "" : `without a change: ${chosen.empty.join(", ")}`,
    chosen.left.length === 0 ? "" : `not taken, since they did not succeed: ${chosen.left.join(", ")}`,
    settingsOf(view).dirty
      ? "the work tree had changes of its own when the run began; they are not part of it"
      : "",
  ].filter((note) => note !== "");
  return [
    `${palette.paint("bold", counted(ids.length, "patch", "patches"))}: ${ids.join(", ")}`,
    ...notes.map((note) => palette.paint("dim", note)),
    sanitizeForTerminal(stat.toString("utf8"), { multiline: true }),
  ].join("\n");
}

function record(
  deps: CommandDeps,
  view: RunView,
  chosen: ChosenPatches,
  applied: AppliedPatches,
): Promise<void> {
  return recordEvent(deps, settingsOf(view).runId, {
    type: "patches-applied",
    taskIds: chosen.patches.map(({ taskId }) => taskId),
    target: applied.target,
    headBefore: applied.headBefore,
    tree: applied.tree,
    undo: applied.undo,
  });
}

function renderDone(view: RunView, chosen: ChosenPatches, applied: AppliedPatches): string {
  const what = counted(chosen.patches.length, "patch", "patches");
  const where = describeTarget(applied.target);
  const next = applied.target === "worktree" ? `${where}; it is staged, not committed` : where;
  return `applied ${what} to ${next}\nto take it back: bulkhead undo ${view.runId ?? ""}\n`;
}

async function writeJson(
  context: CliContext,
  chosen: ChosenPatches,
  applied: AppliedPatches | null,
  flags: ApplyFlags,
): Promise<void> {
  const json = {
    version: 1,
    dry_run: flags.dryRun === true,
    task_ids: chosen.patches.map(({ taskId }) => taskId),
    brought: chosen.brought,
    empty: chosen.empty,
    left: chosen.left,
    allowed: flags.allow ?? [],
    risks: chosen.patches.flatMap(({ taskId, patch }) =>
      (patch.risks ?? []).map((risk) => ({ task: taskId, ...risk })),
    ),
    applied:
      applied === null
        ? null
        : { target: applied.target, head_before: applied.headBefore, tree: applied.tree },
  };
  await writeOut(context.stdout, `${JSON.stringify(json, null, 2)}\n`);
}
