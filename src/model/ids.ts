import { z } from "zod";

/**
 * Ids go into file names, container names and git refs, so they are held to the intersection of what those allow:
 * ASCII letters, digits, `_`, `-` and `.`, starting with a letter or digit, at most 64 characters, no `..`,
 * not ending in `.` or `.lock` (git refuses both in a ref).
 */
// No lookbehind: the pattern goes into the JSON Schema too, and not every validator's regular expressions have it.
const ID_PATTERN = /^(?!.*\.\.)(?!.*\.(?:lock)?$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export const taskIdSchema = z
  .string()
  .regex(
    ID_PATTERN,
    "use 1 to 64 of A-Z a-z 0-9 _ - . , starting with a letter or digit, not ending in . or .lock",
  )
  .brand<"TaskId">()
  .describe("Name of the task, unique in the plan. Used in paths, container names and git refs.");
export type TaskId = z.infer<typeof taskIdSchema>;

/** `20261130-142501-3f9a2c`: start time in UTC, then 6 hex digits, so that names sort by time and never collide. */
export const runIdSchema = z
  .string()
  .regex(/^\d{8}-\d{6}-[0-9a-f]{6}$/)
  .brand<"RunId">();
export type RunId = z.infer<typeof runIdSchema>;

/** One execution of one task. `attempt` counts from 1. Doors, containers and directories are named from it. */
export interface AttemptKey {
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly attempt: number;
}

/** Builds a run id from a start time and 3 random bytes (the caller has the clock and the randomness). */
export function formatRunId(startIso: string, randomHex6: string): RunId {
  const digits = startIso.replace(/[-:T]/g, "");
  return runIdSchema.parse(`${digits.slice(0, 8)}-${digits.slice(8, 14)}-${randomHex6}`);
}

/** `run/task#2`: how an attempt is written for people and in log lines. */
export function formatAttempt(key: AttemptKey): string {
  return `${key.runId}/${key.taskId}#${key.attempt}`;
}
