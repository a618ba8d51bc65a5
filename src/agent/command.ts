import { parseArgs } from "node:util";

/** What a command line asks for: one call, and what to do with files around it. */
export interface BusCommand {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>> | undefined;
  /** Read this file ("-": standard input) into `params.content` as base64. */
  readonly contentFrom?: string;
  /** Write the answer's file content here ("-": standard output) instead of printing JSON. */
  readonly contentTo?: string;
  /** Nothing to print: the answer says only that it was accepted. */
  readonly isQuiet?: boolean;
}

/** The command line is wrong; the message says how. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Turns arguments (without the program's name) into a call. Values are checked by the bus, shapes here. */
export function parseCommand(argv: readonly string[]): BusCommand {
  const [name = "", ...rest] = argv;
  const build = COMMANDS.get(name);
  if (!build) throw new UsageError(`there is no command ${JSON.stringify(name)}`);
  return build(rest);
}

type Build = (args: string[]) => BusCommand;

const COMMANDS: ReadonlyMap<string, Build> = new Map<string, Build>([
  [
    "register",
    (args) => {
      const [agent, version] = take("register", args, 1, 2).words;
      return { method: "register", params: { name: agent, version }, isQuiet: true };
    },
  ],
  [
    "status",
    (args) => {
      const { words, options } = take("status", args, 1, 2, ["percent"]);
      const percent = toNumber("--percent", options["percent"]);
      return { method: "status", params: { state: words[0], message: words[1], percent }, isQuiet: true };
    },
  ],
  [
    "progress",
    (args) => {
      const { words } = take("progress", args, 1, 2);
      const percent = toNumber("PERCENT", words[0]);
      return { method: "progress", params: { percent, message: words[1] }, isQuiet: true };
    },
  ],
  [
    "log",
    (args) => {
      const { words, options } = take("log", args, 1, 1, ["level"]);
      return { method: "log", params: { message: words[0], level: options["level"] }, isQuiet: true };
    },
  ],
  [
    "error",
    (args) => {
      const { words, flags } = take("error", args, 1, 1, [], ["fatal"]);
      return { method: "error", params: { message: words[0], fatal: flags.has("fatal") }, isQuiet: true };
    },
  ],
  [
    "get-file",
    (args) => {
      const { words, options } = take("get-file", args, 2, 2, ["output"]);
      return {
        method: "get_file",
        // base64 is the form that every content survives.
        params: { task_id: words[0], path: words[1], encoding: "base64" },
        contentTo: options["output"] ?? "-",
      };
    },
  ],
  [
    "put-artifact",
    (args) => {
      const { words, options } = take("put-artifact", args, 1, 1, ["name"]);
      const file = words[0] ?? "";
      const base = options["name"] ?? file.slice(file.lastIndexOf("/") + 1);
      if (base === "-") throw new UsageError("put-artifact from standard input needs --name");
      return { method: "put_artifact", params: { name: base, encoding: "base64" }, contentFrom: file };
    },
  ],
  ...["context", "describe", "ping"].map((method): [string, Build] => [
    method,
    (args) => {
      take(method, args, 0, 0);
      return { method, params: {} };
    },
  ]),
  [
    "raw",
    (args) => {
      const { words } = take("raw", args, 1, 2);
      return { method: words[0] ?? "", params: toParams(words[1]) };
    },
  ],
]);

interface Taken {
  readonly words: readonly string[];
  readonly options: Readonly<Record<string, string | undefined>>;
  readonly flags: ReadonlySet<string>;
}

function take(
  command: string,
  args: string[],
  fewest: number,
  most: number,
  options: readonly string[] = [],
  flags: readonly string[] = [],
): Taken {
  const known: Record<string, { type: "string" | "boolean"; short?: string }> = {};
  for (const name of options)
    known[name] = name === "output" ? { type: "string", short: "o" } : { type: "string" };
  for (const name of flags) known[name] = { type: "boolean" };
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ args, options: known, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(`${command}: ${error instanceof Error ? error.message : String(error)}`);
  }
  const words = parsed.positionals;
  if (words.length < fewest || words.length > most) {
    const range = fewest === most ? String(fewest) : `${fewest} to ${most}`;
    throw new UsageError(
      `${command} takes ${range} arguments, ${words.length} given (quote texts with spaces)`,
    );
  }
  const values: Record<string, string | undefined> = {};
  for (const name of options) {
    const value = parsed.values[name];
    if (typeof value === "string") values[name] = value;
  }
  return { words, options: values, flags: new Set(flags.filter((name) => parsed.values[name] === true)) };
}

function toNumber(what: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) {
    throw new UsageError(`${what} must be a number, got ${JSON.stringify(text)}`);
  }
  return value;
}

function toParams(text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UsageError("the params of raw must be JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError("the params of raw must be a JSON object");
  }
  return value as Record<string, unknown>;
}
