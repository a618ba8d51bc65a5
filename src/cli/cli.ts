import { Command, CommanderError } from "commander";
import { RunnerError, type RunnerErrorCode } from "../model/runner-error.ts";
import { sanitizeForTerminal } from "../util/sanitize-text.ts";
import { registerCommands } from "./compose.ts";
import { type CliContext, EXIT, type ExitCode } from "./context.ts";
import { cacheDirFrom, stateDirFrom } from "./paths.ts";
import { packageVersion } from "./version.ts";

/** Runs one command line to its exit code. Never throws. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const context: CliContext = {
    cwd: process.cwd(),
    env: process.env,
    stateDir: stateDirFrom(process.env),
    cacheDir: cacheDirFrom(process.env),
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
  };
  const program = new Command("bulkhead")
    .description(
      "Run many agents, or any untrusted commands, in parallel on one repository; patches come out.",
    )
    .version(packageVersion())
    .exitOverride()
    .showHelpAfterError("(add --help for usage and examples)");
  registerCommands(program, context);
  try {
    await program.parseAsync([...argv]);
    return typeof process.exitCode === "number" ? process.exitCode : EXIT.done;
  } catch (error) {
    return report(error, context, argv.includes("--json"));
  }
}

function report(error: unknown, context: CliContext, asJson: boolean): number {
  // Commander has printed its own message; help and version end with code 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  if (!(error instanceof RunnerError)) {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    context.stderr.write(`error: bulkhead itself failed; this is a bug\n${stack}\n`);
    return EXIT.host;
  }
  if (asJson) {
    const { code, message, hint, data } = error;
    context.stderr.write(`${JSON.stringify({ error: { code, message, hint, data } })}\n`);
  } else {
    context.stderr.write(`error: ${printable(error.message)}\n`);
    if (error.hint) context.stderr.write(`hint: ${printable(error.hint)}\n`);
  }
  return exitCodeOf(error.code);
}

/** Lines stay lines; everything else that could steer a terminal is taken out. */
function printable(text: string): string {
  return text
    .split("\n")
    .map((line) => sanitizeForTerminal(line))
    .join("\n");
}

/** Who has to act: 1 the work, 2 what was asked, 3 the machine or bulkhead. */
function exitCodeOf(code: RunnerErrorCode): ExitCode {
  switch (code) {
    case "usage":
    case "plan-invalid":
    case "config-invalid":
    case "not-a-repository":
    case "repository-refused":
    case "run-not-found":
    case "task-not-found":
      return EXIT.usage;
    case "apply-refused":
    case "undo-refused":
      return EXIT.taskFailed;
    case "engine-unreachable":
    case "image-missing":
    case "preflight-failed":
    case "workspace-failed":
    case "store-failed":
    case "supervisor-unreachable":
    case "git-failed":
    case "timeout":
    case "internal":
      return EXIT.host;
  }
}
