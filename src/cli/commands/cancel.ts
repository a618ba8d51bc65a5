import type { Command } from "commander";
import { RunnerError } from "../../model/runner-error.ts";
import type { CommandDeps } from "../command-deps.ts";
import type { CliContext } from "../context.ts";
import { findRun, readRun, taskIdOf } from "../find-run.ts";
import { writeOut } from "../write-out.ts";

/** `bulkhead cancel`: stops a run, or one task of it with everything that needs it. */
export function registerCancel(program: Command, context: CliContext, deps: CommandDeps): void {
  program
    .command("cancel")
    .description("Stop a run, or one task of it; what is done stays done")
    .argument("<RUN>", "run id, its beginning or end, or `latest`")
    .argument("[TASK]", "only this task; tasks that need it are held")
    .option("--json", "print JSON")
    .addHelpText("after", "\nExamples:\n  bulkhead cancel latest\n  bulkhead cancel 3f9a2c docs_update")
    .action(async (run: string, task: string | undefined, flags: { json?: boolean }) => {
      const store = deps.openStore(true);
      let runId: string;
      let taskId: string | null;
      let isOver: boolean;
      try {
        const view = readRun(store, findRun(store, run));
        runId = view.runId ?? run;
        taskId = task === undefined ? null : taskIdOf(view, task);
        isOver = view.outcome !== null;
      } finally {
        store.close();
      }
      const client = isOver ? null : await deps.connectSupervisor();
      if (client === null) {
        const why = isOver ? "it is over" : "no supervisor drives it";
        throw new RunnerError("usage", `run ${runId} is not running: ${why}`, {
          hint: isOver
            ? `\`bulkhead status ${runId}\` shows how it ended`
            : "`bulkhead gc` removes what it left behind",
        });
      }
      try {
        await client.call("cancel", { run_id: runId, task_id: taskId });
      } finally {
        client.close();
      }
      const text = flags.json
        ? `${JSON.stringify({ run_id: runId, task_id: taskId, cancelled: true })}\n`
        : `cancelling ${taskId === null ? `run ${runId}` : `${taskId} of run ${runId}`}\n`;
      await writeOut(context.stdout, text);
    });
}
