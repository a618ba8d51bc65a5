import { z } from "zod";
import { taskIdSchema } from "../model/ids.ts";
import {
  environment,
  field,
  listOf,
  MAX_ARGUMENT_BYTES,
  oneOf,
  repositoryPath,
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

const id = field(
  taskIdSchema,
  {
    noun: "a task id",
    allowed:
      "1 to 64 of A-Z a-z 0-9 _ - . , starting with a letter or digit, without .., not ending in . or .lock",
  },
  "Name of the task, unique in the plan. Used in paths, container names and git refs.",
);

const contextSchema = field(
  z.strictObject({
    files: listOf("Files in focus.", "a list of paths", repositoryPath).optional(),
    acceptance: listOf(
      "What must hold for the work to be accepted.",
      "a list of sentences",
      text("A sentence."),
    ).optional(),
    prohibited: listOf("What the agent must not do.", "a list of sentences", text("A sentence.")).optional(),
    notes: text("Anything else the agent should know.", { max: 1_000_000 }).optional(),
  }),
  { noun: "a map of context", allowed: "files, acceptance, prohibited, notes" },
  "Structured context, given to the agent in context.json.",
);

const run = text("Shell script to run, by /bin/sh unless `shell` says bash.", {
  noun: "a shell script",
  max: MAX_ARGUMENT_BYTES,
});

const words = text("One word of a command line.", { empty: true, max: MAX_ARGUMENT_BYTES });

const command = field(
  z.union([
    z
      .string()
      .min(1)
      .max(MAX_ARGUMENT_BYTES)
      .regex(/^[^\0]+$/),
    z.array(words).min(1).max(10_000),
  ]),
  { noun: "a command line", allowed: "text or a list of words" },
  "Words added to the agent's command line, e.g. --file src/auth.py --task 'Refactor it'. Split by quotes; no shell, nothing is expanded.",
);

/** One task as a person writes it. What fields mean together is checked in `check-action.ts`. */
export const taskSchema = field(
  z.strictObject({
    $schema: schemaReference.optional(),
    id: id.optional(),
    task_id: field(taskIdSchema, { noun: "a task id", allowed: "see id" }, "Another name for id.").optional(),
    title: text("A person's name for the task. Default: the id.", { max: 200 }).optional(),
    run: run.optional(),
    shell: oneOf("Shell for `run`. Default sh.", "a shell", ["sh", "bash"]).optional(),
    command: command.optional(),
    prompt: text("What the agent is asked to do, given to it on standard input.", {
      noun: "a prompt",
      max: 4_000_000,
    }).optional(),
    agent: agentNameSchema.optional(),
    image: imageSchema.optional(),
    runtime: runtimeSchema.optional(),
    priority: wholeNumber("A lower number goes first. Default 100.", -1_000_000, 1_000_000).optional(),
    depends_on: listOf("Ids of the tasks this one waits for.", "a list of task ids", id, 100_000).optional(),
    timeout: timeoutSchema.optional(),
    retries: retriesSchema.optional(),
    caps: capsSchema.optional(),
    caps_mode: capsMode.optional(),
    env: environment("Environment variables of the task.").optional(),
    files: filesSchema.optional(),
    context: contextSchema.optional(),
    protect: protectSchema.optional(),
    verify: verifySchema.optional(),
  }),
  { noun: "a task", allowed: "a map with id and one of run, command or prompt" },
  "One task of a plan.",
);

export type TaskInput = z.output<typeof taskSchema>;
