import type { TaskCommand } from "../model/task.ts";
import { nearest } from "../util/nearest.ts";
import { err, ok, type Result } from "../util/result.ts";
import { type ShellWordsProblem, splitShellWords } from "../util/shell-words.ts";
import type { FieldProblem } from "./explain-issue.ts";
import { MAX_ARGUMENT_BYTES, orList, repositoryPath } from "./fields.ts";
import { showValue } from "./plan-problem.ts";
import type { AgentDefinition } from "./project-config.ts";
import type { TaskInput } from "./task-schema.ts";

const MAX_TITLE_CHARS = 100;

/** Where no agent is defined at all, a bare `command` is given to the program of this name in the image. */
const BARE_AGENT: AgentDefinition = { argv: ["agent"], promptBy: "stdin", env: {} };

/** What `run`, `command` or `prompt` comes to. */
export interface Action {
  readonly command: TaskCommand;
  readonly prompt: string | null;
  readonly title: string | null;
  readonly contextFiles: readonly string[];
  readonly agentEnv: Readonly<Record<string, string>>;
}

/** Works out what is executed. Of several actions `checkAction` has left one. */
export function compileAction(
  input: TaskInput,
  defaultAgent: string | null,
  agents: ReadonlyMap<string, AgentDefinition>,
): Result<Action, readonly FieldProblem[]> {
  if (input.run !== undefined) {
    const shell = input.shell === "bash" ? "/bin/bash" : "/bin/sh";
    const tooLong = checkArgument("run", input.run);
    if (tooLong !== null) return err([tooLong]);
    const command = { argv: [shell, "-c", input.run], stdin: null, agent: null };
    return ok({ command, prompt: null, title: null, contextFiles: [], agentEnv: {} });
  }
  const agent = chooseAgent(input, defaultAgent, agents);
  if (!agent.ok) return err([agent.error]);
  const { name, definition } = agent.value;
  if (input.command !== undefined) return compileCommand(input.command, name, definition);

  const prompt = input.prompt ?? "";
  const asArgument = definition.promptBy === "argument";
  const tooLong = asArgument ? checkArgument("prompt", prompt) : null;
  if (tooLong !== null) return err([tooLong]);
  const command = {
    argv: asArgument ? [...definition.argv, prompt] : definition.argv,
    stdin: asArgument ? null : prompt,
    agent: name,
  };
  return ok({ command, prompt, title: null, contextFiles: [], agentEnv: definition.env });
}

/** The named agent, else the default, else the only one there is. */
function chooseAgent(
  input: TaskInput,
  defaultAgent: string | null,
  agents: ReadonlyMap<string, AgentDefinition>,
): Result<{ name: string; definition: AgentDefinition }, FieldProblem> {
  const names = [...agents.keys()];
  const [only] = names;
  const name = defaultAgent ?? (names.length === 1 ? only : undefined);
  const example = "agents: {NAME: {argv: [...]}} in bulkhead.yaml or the plan";
  if (name === undefined) {
    if (names.length === 0 && input.command !== undefined)
      return ok({ name: "agent", definition: BARE_AGENT });
    return err({
      path: ["agent"],
      value: undefined,
      message:
        names.length === 0 ? "is missing, and no agent is defined" : "is missing, and there is no default",
      allowed: names.length === 0 ? example : orList(names),
    });
  }
  const definition = agents.get(name);
  if (definition !== undefined) return ok({ name, definition });
  const near = nearest(name, names);
  return err({
    path: ["agent"],
    value: name,
    message: `${showValue(name)} is not a defined agent`,
    allowed: names.length === 0 ? example : orList(names),
    ...(near === null ? {} : { hint: `did you mean ${near}?` }),
  });
}

/** The classic form: `--file F` names a file in focus, `--task T` says what to do; all words go to the agent as they are. */
function compileCommand(
  command: string | readonly string[],
  name: string,
  definition: AgentDefinition,
): Result<Action, readonly FieldProblem[]> {
  const split = typeof command === "string" ? splitShellWords(command) : ok(command);
  if (!split.ok) return err([{ path: ["command"], value: command, ...explainSplit(command, split.error) }]);
  const words = split.value;
  const files = optionValues(words, "--file");
  const tasks = optionValues(words, "--task");
  const problems: FieldProblem[] = [];
  for (const [option, values] of [
    ["--file", files],
    ["--task", tasks],
  ] as const) {
    if (values.includes(undefined)) {
      problems.push({
        path: ["command"],
        value: command,
        message: `${option} has no value`,
        allowed: `${option} VALUE`,
      });
    }
  }
  for (const file of files) {
    if (file === undefined || repositoryPath.safeParse(file).success) continue;
    problems.push({
      path: ["command"],
      value: command,
      message: `--file ${showValue(file)} is not a path in the repository`,
      allowed: "a path relative to its root, without ..",
    });
  }
  if (problems.length > 0) return err(problems);
  const prompt = tasks.length === 0 ? null : tasks.join("\n");
  return ok({
    command: { argv: [...definition.argv, ...words], stdin: null, agent: name },
    prompt,
    title: prompt === null ? null : toTitle(prompt),
    contextFiles: files.filter((file) => file !== undefined),
    agentEnv: definition.env,
  });
}

/** Values of `--name V` and `--name=V`, in order; undefined for one that is the last word. Words after `--` are no options. */
function optionValues(words: readonly string[], option: string): readonly (string | undefined)[] {
  const end = words.indexOf("--");
  const options = end === -1 ? words : words.slice(0, end);
  const values: (string | undefined)[] = [];
  for (let index = 0; index < options.length; index += 1) {
    const word = options[index] ?? "";
    if (word === "--file" || word === "--task") {
      index += 1;
      if (word === option) values.push(options[index]);
    } else if (word.startsWith(`${option}=`)) values.push(word.slice(option.length + 1));
  }
  return values;
}

function toTitle(prompt: string): string | null {
  const line = prompt.trim().split(/[\r\n]/, 1)[0] ?? "";
  if (line === "") return null;
  return line.length <= MAX_TITLE_CHARS ? line : `${line.slice(0, MAX_TITLE_CHARS - 1).toWellFormed()}…`;
}

function explainSplit(
  command: string | readonly string[],
  problem: ShellWordsProblem,
): { message: string; allowed: string } {
  const column = problem.offset + 1;
  const shown = showValue(command);
  switch (problem.kind) {
    case "unclosed-quote":
      return {
        message: `${shown} has a ${problem.quote} at character ${column} that is not closed`,
        allowed: "a pair of quotes",
      };
    case "trailing-backslash":
      return { message: `${shown} ends in a backslash`, allowed: "\\\\ for a backslash" };
    case "operator":
      return {
        message: `${shown} has a bare ${problem.operator} at character ${column}, and no shell reads it`,
        allowed: "quotes around it, or run for a shell command",
      };
  }
}

/** Characters were bounded by the schema; what the kernel bounds is bytes. */
function checkArgument(name: string, value: string): FieldProblem | null {
  const bytes = Buffer.byteLength(value);
  if (bytes <= MAX_ARGUMENT_BYTES) return null;
  return {
    path: [name],
    value,
    message: `${bytes.toLocaleString("en")} bytes do not fit into one argument`,
    allowed: `at most ${MAX_ARGUMENT_BYTES.toLocaleString("en")} bytes, or a script file of the repository`,
  };
}
