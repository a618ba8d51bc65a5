import { type TaskId, taskIdSchema } from "../model/ids.ts";
import type { TaskSpec } from "../model/task.ts";
import { err, ok, type Result } from "../util/result.ts";
import { compileAction } from "./compile-action.ts";
import type { FieldProblem } from "./explain-issue.ts";
import { type AgentDefinition, mergeDefaults, type TaskDefaults } from "./project-config.ts";
import type { TaskInput } from "./task-schema.ts";

/** What surrounds a task: the layer of defaults above it and the agents it may name. */
export interface TaskSurroundings {
  readonly defaults: TaskDefaults;
  readonly agents: ReadonlyMap<string, AgentDefinition>;
  /** Cores of the machine that runs it, where known. */
  readonly hostCpus: number | undefined;
}

/** Priority of a task that names none: behind those that do, as people count from 1. */
const DEFAULT_PRIORITY = 100;

/** Turns a task as it was written (and already checked field by field) into one with everything filled in. */
export function compileTask(
  input: TaskInput,
  surroundings: TaskSurroundings,
  source: string,
): Result<TaskSpec, readonly FieldProblem[]> {
  const { agents, hostCpus } = surroundings;
  const settings = mergeDefaults(surroundings.defaults, input);
  const problems: FieldProblem[] = [];

  const action = compileAction(input, settings.agent, agents);
  if (!action.ok) problems.push(...action.error);
  if (hostCpus !== undefined && settings.caps.cpus > hostCpus) {
    problems.push({
      path: ["caps", "cpus"],
      value: settings.caps.cpus,
      message: `${settings.caps.cpus} is more than this machine has`,
      allowed: `at most ${hostCpus}`,
    });
  }
  if (settings.files.tests === "matching" && settings.files.keywords.length === 0) {
    problems.push({
      path: ["files", "keywords"],
      value: settings.files.keywords,
      message: "is missing, and files.tests is matching",
      allowed: "words that occur in the paths of the tests, e.g. [auth, login]",
    });
  }
  if (!action.ok || problems.length > 0) return err(problems);

  const { command, prompt, title, contextFiles, agentEnv } = action.value;
  const id: TaskId = taskIdSchema.parse(input.id ?? input.task_id);
  const { agent: _agent, ...rest } = settings;
  return ok({
    ...rest,
    id,
    title: input.title ?? title ?? id,
    command,
    prompt,
    priority: input.priority ?? DEFAULT_PRIORITY,
    dependsOn: [...new Set(input.depends_on ?? [])],
    env: { ...surroundings.defaults.env, ...agentEnv, ...input.env },
    context: {
      files: [...new Set([...contextFiles, ...(input.context?.files ?? [])])],
      acceptance: input.context?.acceptance ?? [],
      prohibited: input.context?.prohibited ?? [],
      notes: input.context?.notes ?? null,
    },
    source,
  });
}
