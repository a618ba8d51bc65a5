import { type Command, Option } from "commander";
import { RunnerError } from "../../model/runner-error.ts";
import type { TaskView } from "../../observe/run-view.ts";
import { sanitizeForTerminal } from "../../util/sanitize-text.ts";
import { explainMissingPatch } from "../choose-patches.ts";
import type { CommandDeps, DiffOptions } from "../command-deps.ts";
import type { CliContext } from "../context.ts";
import { findRun, findTasks, readRun, settingsOf } from "../find-run.ts";
import { choosePalette, type Palette } from "../render/palette.ts";
import { describePatch, describeRisks, describeSecrets } from "../render/task-words.ts";
import { writeOut } from "../write-out.ts";

interface DiffFlags {
  readonly stat?: boolean;
  readonly nameOnly?: boolean;
  readonly color: "auto" | "always" | "never";
  readonly json?: boolean;
}

/** `bulkhead diff`: what tasks changed, each against what it started from. */
export function registerDiff(program: Command, context: CliContext, deps: CommandDeps): void {
  program
    .command("diff")
    .description("Show what the tasks of a run changed")
    .argument("[RUN]", "run id, its beginning or end, or `latest`; the newest run where it is left out")
    .argument("[TASK...]", "only these tasks")
    .option("--stat", "files and lines only")
    .option("--name-only", "names of changed files only")
    .addOption(new Option("--color <WHEN>", "colours").choices(["auto", "always", "never"]).default("auto"))
    .option("--json", "print files and lines as JSON")
    .addHelpText(
      "after",
      "\nOn a terminal control characters are taken out; piped output is the patch as it is.\n\nExamples:\n  bulkhead diff\n  bulkhead diff latest auth_refactor --stat\n  bulkhead diff latest auth_refactor | git apply --check",
    )
    .action(async (run: string | undefined, ids: string[], flags: DiffFlags) => {
      const store = deps.openStore(true);
      try {
        const view = readRun(store, findRun(store, run));
        const tasks = findTasks(view, ids);
        const named = ids.length > 0 ? tasks.find((task) => task.patch === null) : undefined;
        if (named !== undefined) {
          throw new RunnerError("usage", `${named.spec.id} has no patch: ${explainMissingPatch(named)}`);
        }
        const withPatch = tasks.filter((task) => task.patch !== null);
        if (flags.json === true) {
          await writeOut(context.stdout, `${JSON.stringify(toDiffJson(withPatch), null, 2)}\n`);
          return;
        }
        const isTty = context.stdout.isTTY === true;
        const palette = choosePalette(context.env, isTty);
        const options: DiffOptions = {
          format: flags.nameOnly === true ? "names" : flags.stat === true ? "stat" : "patch",
          color: flags.color === "always" || (flags.color === "auto" && palette.isColored),
        };
        for (const task of withPatch) {
          if (task.patch === null) continue;
          // Beside the patch, not in it: it may be on its way into another program.
          for (const line of describeSecrets(task.patch.secrets ?? []))
            await writeOut(
              context.stderr,
              `warning: ${task.spec.id} has what looks like a secret: ${line}\n`,
            );
          const risks = task.patch.risks ?? [];
          for (const line of describeRisks(risks))
            await writeOut(context.stderr, `warning: ${task.spec.id} needs a look: ${line}\n`);
          const first = risks.flatMap(({ paths }) => paths);
          const bytes = await deps.diffPatch(settingsOf(view), task.patch, { ...options, first });
          // One task's patch, piped, is exactly a patch; several are told apart by lines that `git apply` skips.
          const head = isTty || tasks.length > 1 ? renderHead(task, palette) : "";
          const body = isTty ? showable(bytes, options.color) : bytes;
          if (!(await writeOut(context.stdout, head)) || !(await writeOut(context.stdout, body))) return;
        }
        if (withPatch.length === 0)
          await writeOut(context.stderr, `run ${view.runId ?? ""} has no patches yet\n`);
      } finally {
        store.close();
      }
    });
}

function renderHead(task: TaskView, palette: Palette): string {
  const summary = task.patchSummary === null ? "" : describePatch(task.patchSummary);
  return `${palette.paint("bold", `# ${task.spec.id}`)}: ${summary}\n`;
}

/**
 * Diff text for a terminal. Git's own colours (SGR sequences) are the only escapes that are kept, and only where git was asked for
 * them; a file can hold such a sequence too, which at worst colours a line.
 */
function showable(bytes: Buffer, keepsColors: boolean): string {
  const text = bytes.toString("utf8");
  if (!keepsColors) return sanitizeForTerminal(text, { multiline: true });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for.
  const parts = text.split(/(\x1b\[[\d;]*m)/);
  return parts
    .map((part, index) => (index % 2 === 1 ? part : sanitizeForTerminal(part, { multiline: true })))
    .join("");
}

function toDiffJson(tasks: readonly TaskView[]): object {
  return {
    version: 1,
    tasks: tasks.map(({ spec, patch, patchSummary }) => ({
      id: spec.id,
      parent: patch?.parent,
      commit: patch?.commit,
      ...patchSummary,
      secrets: patch?.secrets ?? [],
      risks: patch?.risks ?? [],
      changes: patch?.files.map(({ path, kind, mode, insertions, deletions }) => ({
        path,
        kind,
        mode,
        insertions,
        deletions,
      })),
    })),
  };
}
