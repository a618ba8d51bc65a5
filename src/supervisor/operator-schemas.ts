import { z } from "zod";
import type { RunEvent } from "../model/event.ts";
import { runIdSchema, taskIdSchema } from "../model/ids.ts";
import type { RunSettings } from "../model/run.ts";
import type { TaskSpec } from "../model/task.ts";

/**
 * Parameters of the operator methods on `supervisor.sock`. The socket is mode 0600: the peer is the same user running the same
 * version (checked by `hello`), so plans pass as the typed data they are; they were validated where they were read.
 */
export const submitParams = z.object({
  settings: z.custom<Omit<RunSettings, "runId">>((value) => typeof value === "object" && value !== null),
  tasks: z.array(z.custom<TaskSpec>((value) => typeof value === "object" && value !== null && "id" in value)),
  secrets: z.array(z.string()),
});

export const cancelParams = z.object({ run_id: runIdSchema, task_id: taskIdSchema.nullable() });

export const watchParams = z.object({
  run_id: runIdSchema,
  after_seq: z.number().int().nonnegative().default(0),
  output: z.boolean().default(false),
  samples: z.boolean().default(false),
});

export const gcParams = z.object({
  dry_run: z.boolean(),
  older_than_ms: z.number().nonnegative().nullable(),
  engine: z.string(),
});

export const recordParams = z.object({
  run_id: runIdSchema,
  event: z.custom<RunEvent>((value) => typeof value === "object" && value !== null && "type" in value),
});

export const noParams = z.object({}).optional();
