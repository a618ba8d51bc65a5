/**
 * The only place, with its siblings `compose-*.ts`, where drivers are built and handed to what needs them. Drivers are imported when
 * they are used: the engine's client alone takes longer to load than `bulkhead status` takes to run.
 */
import type { Command } from "commander";
import { registerApply } from "./commands/apply.ts";
import { registerCancel } from "./commands/cancel.ts";
import { registerDiff } from "./commands/diff.ts";
import { registerDoctor } from "./commands/doctor.ts";
import { registerGc } from "./commands/gc.ts";
import { registerGraph } from "./commands/graph.ts";
import { registerInit } from "./commands/init.ts";
import { registerLogs } from "./commands/logs.ts";
import { registerRun } from "./commands/run.ts";
import { registerSetup } from "./commands/setup.ts";
import { registerStatus } from "./commands/status.ts";
import { registerSupervise } from "./commands/supervise.ts";
import { registerUndo } from "./commands/undo.ts";
import { composeCommands } from "./compose-commands.ts";
import type { CliContext } from "./context.ts";

const engineDrivers = () => import("./compose-engine.ts");

/** Registers every verb with what it needs. */
export function registerCommands(program: Command, context: CliContext): void {
  const commands = composeCommands(context);
  registerInit(program, context);
  registerSetup(program, context, {
    findEngine: async (env, options) => (await engineDrivers()).findEngine(env, options),
    startEngine: async (options) => (await engineDrivers()).startEngine(options),
    ensureImage: async (request) => (await engineDrivers()).ensureImage(request),
  });
  registerDoctor(program, context, {
    findEngine: async (env, options) => (await engineDrivers()).findEngine(env, options),
    checkImage: async (request) => (await engineDrivers()).checkImage(request),
    openEngine: async (found) => (await engineDrivers()).openEngine(found, context.stateDir),
    openScratch: (engine) => async (request) => (await engineDrivers()).openScratch(engine, request),
  });
  registerRun(program, context, {
    startRun: async (options) => (await import("./compose-run.ts")).startRun(context, options),
  });
  registerStatus(program, context, commands);
  registerLogs(program, context, commands);
  registerGraph(program, context, commands);
  registerDiff(program, context, commands);
  registerApply(program, context, commands);
  registerUndo(program, context, commands);
  registerCancel(program, context, commands);
  registerGc(program, context, commands);
  registerSupervise(program, async () => (await import("./compose-supervisor.ts")).superviseState(context));
}
