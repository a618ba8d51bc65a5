import { createInterface } from "node:readline";
import type { DirtyMode } from "../model/run.ts";
import { RunnerError } from "../model/runner-error.ts";
import { sanitizeForTerminal } from "../util/sanitize-text.ts";
import type { UncommittedFiles } from "../workspace/work-tree-changes.ts";
import type { CliContext } from "./context.ts";
import { counted } from "./render/task-words.ts";

const MAX_NAMED = 10;
const ANSWERS: Readonly<Record<string, DirtyMode>> = {
  i: "include",
  include: "include",
  w: "ignore",
  without: "ignore",
  ignore: "ignore",
};

/**
 * Asks what to do with uncommitted changes. Anything but an answer that is understood, the end of input and Ctrl+C too, means not to
 * start: throws RunnerError `usage`.
 */
export async function askDirty(
  context: CliContext,
  { tracked, untracked }: UncommittedFiles,
): Promise<DirtyMode> {
  const files = [...tracked, ...untracked];
  const shown = files.slice(0, MAX_NAMED).map((file) => `  ${sanitizeForTerminal(file)}\n`);
  const more = files.length > shown.length ? `  and ${files.length - shown.length} more\n` : "";
  context.stderr.write(`${describe(tracked.length, untracked.length)}:\n${shown.join("")}${more}`);
  const prompt = createInterface({ input: context.stdin, output: context.stderr });
  try {
    const answer = await new Promise<string>((resolve) => {
      prompt.once("close", () => resolve(""));
      prompt.once("SIGINT", () => resolve(""));
      prompt.question("Start with them (i), without them (w), or not at all (N)? [i/w/N] ", resolve);
    });
    const mode = ANSWERS[answer.trim().toLowerCase()];
    if (mode !== undefined) return mode;
  } finally {
    prompt.close();
  }
  throw new RunnerError("usage", "the run was not started: the work tree has uncommitted changes", {
    hint: "--dirty include or --dirty ignore answers beforehand.",
  });
}

function describe(tracked: number, untracked: number): string {
  const changed = `${counted(tracked, "tracked file has", "tracked files have")} changes`;
  return untracked === 0 ? changed : `${changed}, ${counted(untracked, "file is", "files are")} new`;
}
