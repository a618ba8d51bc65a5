import { createInterface } from "node:readline";
import { RunnerError } from "../model/runner-error.ts";
import type { CliContext } from "./context.ts";

/**
 * Asks y/N on the terminal. Where there is none, nobody can be asked: throws RunnerError `usage` (use `--yes`). The end of input
 * and Ctrl+C mean no.
 */
export async function confirm(context: CliContext, question: string): Promise<boolean> {
  if (context.stdin.isTTY !== true || context.stderr.isTTY !== true) {
    throw new RunnerError("usage", "this needs a yes, and there is no terminal to ask on", {
      hint: "look at it with --dry-run, then add --yes",
    });
  }
  const prompt = createInterface({ input: context.stdin, output: context.stderr });
  try {
    const answer = await new Promise<string>((resolve) => {
      prompt.once("close", () => resolve(""));
      prompt.once("SIGINT", () => resolve(""));
      prompt.question(`${question} [y/N] `, resolve);
    });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    prompt.close();
  }
}
