#!/usr/bin/env node
/** The program `bulkhead-bus` inside the container: one command, one call, one exit code. Bundled to a single file for the image. */
import { readFileSync, writeFileSync } from "node:fs";
import { stderr, stdout } from "node:process";
import { nameOfCode } from "../protocol/error-codes.ts";
import { BusRefusal, connect, DoorUnreachable } from "./client.ts";
import { type BusCommand, parseCommand, UsageError } from "./command.ts";
import { USAGE } from "./usage.ts";

const EXIT = { done: 0, refused: 1, usage: 2, unreachable: 3 } as const;
const STDIN_FD = 0;

/** Runs one command line; answers the exit code. */
async function main(argv: readonly string[]): Promise<number> {
  if (
    argv.length === 0 ||
    argv.slice(0, 2).some((word) => word === "--help" || word === "-h") ||
    argv[0] === "help"
  ) {
    (argv.length === 0 ? stderr : stdout).write(USAGE);
    return argv.length === 0 ? EXIT.usage : EXIT.done;
  }
  try {
    await perform(parseCommand(argv));
    return EXIT.done;
  } catch (error) {
    return explain(error);
  }
}

async function perform(command: BusCommand): Promise<void> {
  const params =
    command.contentFrom === undefined
      ? command.params
      : { ...command.params, content: readContent(command.contentFrom) };
  const client = await connect();
  try {
    const result = await client.callRaw(command.method, params);
    if (command.contentTo !== undefined) writeContent(command.contentTo, result);
    else if (!command.isQuiet) stdout.write(`${JSON.stringify(result, undefined, 2)}\n`);
  } finally {
    client.close();
  }
}

function readContent(file: string): string {
  try {
    return readFileSync(file === "-" ? STDIN_FD : file).toString("base64");
  } catch (error) {
    throw new UsageError(`cannot read ${file}: ${describe(error)}`);
  }
}

function writeContent(file: string, result: unknown): void {
  const { content } = result as { content: string };
  const bytes = Buffer.from(content, "base64");
  if (file === "-") {
    stdout.write(bytes);
    return;
  }
  try {
    writeFileSync(file, bytes);
  } catch (error) {
    throw new UsageError(`cannot write ${file}: ${describe(error)}`);
  }
}

function explain(error: unknown): number {
  if (error instanceof BusRefusal) {
    const name = nameOfCode(error.code);
    stderr.write(
      `bulkhead-bus: ${error.message} (${name === undefined ? "" : `${name}, `}code ${error.code})\n`,
    );
    return EXIT.refused;
  }
  if (error instanceof DoorUnreachable) {
    stderr.write(`bulkhead-bus: ${error.message}\n`);
    return EXIT.unreachable;
  }
  if (error instanceof UsageError) {
    stderr.write(`bulkhead-bus: ${error.message}\nTry: bulkhead-bus --help\n`);
    return EXIT.usage;
  }
  throw error;
}

function describe(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

// A reader that went away (`bulkhead-bus describe | head`) is no fault.
stdout.on("error", () => undefined);
process.exitCode = await main(process.argv.slice(2));
