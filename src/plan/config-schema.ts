import { z } from "zod";
import { DIRTY_MODES } from "../model/run.ts";
import {
  environment,
  envName,
  field,
  listOf,
  MAX_ARGUMENT_BYTES,
  oneOf,
  text,
  wholeNumber,
} from "./fields.ts";
import {
  agentNameSchema,
  capsMode,
  capsSchema,
  filesSchema,
  imageSchema,
  protectSchema,
  retriesSchema,
  runtimeSchema,
  schemaReference,
  timeoutSchema,
  verifySchema,
} from "./settings-schema.ts";

/** What both a plan file and the project's configuration may set for all tasks. */
const defaultsShape = {
  agent: agentNameSchema.optional(),
  image: imageSchema.optional(),
  runtime: runtimeSchema.optional(),
  timeout: timeoutSchema.optional(),
  retries: retriesSchema.optional(),
  caps: capsSchema.optional(),
  caps_mode: capsMode.optional(),
  env: environment("Environment variables of every task; a task's own win.").optional(),
  files: filesSchema.optional(),
  protect: protectSchema.optional(),
  verify: verifySchema.optional(),
};

const defaultsKind = { noun: "a map of defaults", allowed: "e.g. {timeout: 10m, caps: {memory: 2GiB}}" };

const planDefaultsSchema = field(
  z.strictObject(defaultsShape),
  defaultsKind,
  "What the tasks of this file take where they say nothing.",
);

const projectDefaultsSchema = field(
  z.strictObject({
    ...defaultsShape,
    slots: wholeNumber("Attempts at once. Default: as many as fit the machine.", 1, 10_000).optional(),
    dirty: oneOf(
      "What becomes of uncommitted changes when a run begins: ignore leaves them out, include takes them into every snapshot, refuse does not begin. Default: ask on a terminal, else ignore.",
      "what to do with uncommitted changes",
      DIRTY_MODES,
    ).optional(),
  }),
  defaultsKind,
  "What tasks take where they and their plan say nothing.",
);

const agentSchema = field(
  z.strictObject({
    argv: field(
      z
        .array(text("A word.", { empty: true, max: MAX_ARGUMENT_BYTES }))
        .min(1)
        .max(1000),
      { noun: "a command line", allowed: "a list of words, e.g. [my-agent, --headless]" },
      "Program and arguments, run as they are without a shell.",
    ),
    prompt_by: oneOf(
      "How the agent is given its prompt: on standard input, or as its last argument. Default stdin.",
      "a way to give the prompt",
      ["stdin", "argument"],
    ).optional(),
    env: environment("Environment variables of tasks that use this agent.").optional(),
  }),
  { noun: "an agent definition", allowed: "e.g. {argv: [my-agent, --headless]}" },
  "How to start one kind of agent.",
);

const agentsSchema = field(
  z.record(agentNameSchema, agentSchema),
  { noun: "a map of agents", allowed: "name: {argv: [...]}" },
  "Agents that tasks can name.",
);

/** `bulkhead.yaml`. */
export const configSchema = field(
  z.strictObject({
    $schema: schemaReference.optional(),
    defaults: projectDefaultsSchema.optional(),
    agents: agentsSchema.optional(),
    secrets: listOf(
      "Names of environment variables whose values are kept out of output and logs.",
      "a list of variable names",
      envName,
      1000,
    ).optional(),
  }),
  { noun: "a configuration", allowed: "a map with defaults, agents, secrets" },
  "Settings of bulkhead for one repository.",
);

/** A plan file around its tasks; those are checked one by one with `taskSchema`. */
export const planEnvelopeSchema = field(
  z.strictObject({
    $schema: schemaReference.optional(),
    tasks: field(
      z.array(z.unknown()),
      { noun: "a list of tasks", allowed: "a list, each with an id and one of run, command or prompt" },
      "The tasks, in any order.",
    ),
    defaults: planDefaultsSchema.optional(),
    agents: agentsSchema.optional(),
  }),
  { noun: "a plan", allowed: "a map with tasks, defaults, agents" },
  "Several tasks with their defaults.",
);

export type DefaultsInput = z.output<typeof projectDefaultsSchema>;
export type AgentsInput = z.output<typeof agentsSchema>;
export type ConfigInput = z.output<typeof configSchema>;
