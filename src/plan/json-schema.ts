import { z } from "zod";
import { configSchema, planEnvelopeSchema } from "./config-schema.ts";
import { taskSchema } from "./task-schema.ts";

/** File names of the JSON Schemas, as they lie in `schema/` and next to the templates of `bulkhead init`. */
export const SCHEMA_FILES = {
  task: "task.schema.json",
  plan: "plan.schema.json",
  config: "config.schema.json",
} as const;

type JsonSchema = z.core.JSONSchema.JSONSchema;

const DIALECT = "http://json-schema.org/draft-07/schema#";

/** The JSON Schemas of what people write, generated from the zod schemas, by file name. For editors; bulkhead checks with zod. */
export function generateSchemas(): Readonly<Record<string, string>> {
  return {
    [SCHEMA_FILES.task]: render("bulkhead task", taskJsonSchema()),
    [SCHEMA_FILES.plan]: render("bulkhead plan", planJsonSchema()),
    [SCHEMA_FILES.config]: render("bulkhead configuration", convert(configSchema)),
  };
}

function render(title: string, schema: JsonSchema): string {
  return `${JSON.stringify({ $schema: DIALECT, title, ...schema }, null, 2)}\n`;
}

function convert(schema: z.ZodType): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: "input", target: "draft-7" });
  return rest;
}

/** With what `check-action.ts` checks, as far as JSON Schema can say it. */
function taskJsonSchema(): JsonSchema {
  return {
    ...convert(taskSchema),
    allOf: [exactlyOne("id", "task_id"), exactlyOne("run", "command", "prompt")],
  };
}

function exactlyOne(...names: readonly string[]): JsonSchema {
  return { oneOf: names.map((name) => ({ type: "object", properties: { [name]: {} }, required: [name] })) };
}

/** A plan file may be a task, a list of tasks, or a map around a list of tasks. */
function planJsonSchema(): JsonSchema {
  const task: JsonSchema = { $ref: "#/definitions/task" };
  const envelope = convert(planEnvelopeSchema);
  const tasks: JsonSchema = { ...(envelope.properties?.["tasks"] as JsonSchema), items: task };
  return {
    description: "A task, a list of tasks, or a map with tasks, defaults and agents.",
    anyOf: [
      task,
      { type: "array", items: task },
      { ...envelope, properties: { ...envelope.properties, tasks } },
    ],
    definitions: { task: taskJsonSchema() },
  };
}
