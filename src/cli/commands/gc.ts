import type { Command } from "commander";
import { sanitizeForTerminal } from "../../util/sanitize-text.ts";
import type { CommandDeps } from "../command-deps.ts";
import { type CliContext, EXIT } from "../context.ts";
import { parseDurationOption } from "../options.ts";
import { choosePalette } from "../render/palette.ts";
import { counted } from "../render/task-words.ts";
import { writeOut } from "../write-out.ts";

/** `bulkhead gc`: removes what attempts left on the engine and on disk. Logs, artifacts and patches stay. */
export function registerGc(program: Command, context: CliContext, deps: CommandDeps): void {
  program
    .command("gc")
    .description("Remove containers, volumes and workspaces that no active run needs")
    .option("--dry-run", "only say what would be removed")
    .option("--older-than <D>", "remove base trees not used for this long too (7d, 12h)", parseDurationOption)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      "\nOnly what carries the label of this state directory is looked at.\n\nExamples:\n  bulkhead gc --dry-run\n  bulkhead gc --older-than 7d",
    )
    .action(async (flags: { dryRun?: boolean; olderThan?: number; json?: boolean }) => {
      const dryRun = flags.dryRun === true;
      const items = await deps.gc({ dryRun, olderThanMs: flags.olderThan ?? null });
      const failed = items.filter((item) => item.error !== undefined);
      if (failed.length > 0) process.exitCode = EXIT.host;
      if (flags.json === true) {
        await writeOut(
          context.stdout,
          `${JSON.stringify({ version: 1, dry_run: dryRun, items }, null, 2)}\n`,
        );
        return;
      }
      const palette = choosePalette(context.env, context.stdout.isTTY === true);
      const verb = dryRun ? "would remove" : "removed";
      const lines = items.map((item) => {
        const what = `${item.kind} ${sanitizeForTerminal(item.name)}`;
        return item.error === undefined
          ? `${verb} ${what} ${palette.paint("dim", `(${sanitizeForTerminal(item.why)})`)}`
          : palette.paint("red", `could not remove ${what}: ${sanitizeForTerminal(item.error)}`);
      });
      const sum =
        items.length === 0
          ? "nothing to remove"
          : `${verb} ${counted(items.length - failed.length, "thing", "things")}${failed.length > 0 ? `, ${failed.length} failed` : ""}`;
      await writeOut(context.stdout, `${[...lines, sum].join("\n")}\n`);
    });
}
