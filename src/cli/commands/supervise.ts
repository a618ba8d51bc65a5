import type { Command } from "commander";

/** Registers the hidden verb that other verbs start the supervisor with; `supervise` runs it to its end. */
export function registerSupervise(program: Command, supervise: () => Promise<void>): void {
  program
    .command("supervise", { hidden: true })
    .description("Own the state directory until nothing is left to do. Started by other commands.")
    .action(supervise);
}
