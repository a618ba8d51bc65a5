import type { Plan, TaskSpec } from "../model/task.ts";
import { err, ok, type Result } from "../util/result.ts";
import { checkAction } from "./check-action.ts";
import { checkGraph, type GraphEntry } from "./check-graph.ts";
import { compileTask, type TaskSurroundings } from "./compile-task.ts";
import { planEnvelopeSchema } from "./config-schema.ts";
import { explainIssues, type FieldProblem } from "./explain-issue.ts";
import { formatPath, type PlanProblem } from "./plan-problem.ts";
import { mergeAgents, mergeDefaults, type ProjectConfig } from "./project-config.ts";
import type { SourceDocument } from "./source-text.ts";
import { taskSchema } from "./task-schema.ts";

/** More tasks in one run are a mistake of a generator. */
export const MAX_TASKS = 100_000;

export interface PlanOptions {
  readonly config: ProjectConfig;
  /** Cores of the machine that will run the plan; a task that asks for more is refused. */
  readonly hostCpus?: number;
}

/** A document and the file it came from. */
export interface PlanSource {
  readonly file: string;
  readonly document: SourceDocument;
}

/** One task on its way through. */
interface Draft {
  readonly raw: unknown;
  readonly file: string;
  readonly source: string;
  /** The way to it in its document. */
  readonly prefix: readonly PropertyKey[];
  /** Null where the defaults or agents around it are wrong: what depends on them is not judged then. */
  readonly surroundings: TaskSurroundings | null;
  lineOf(path: readonly PropertyKey[]): number | undefined;
}

/** Checks a plan given as an object (by a program, or over HTTP): a task, a list of tasks, or `{ tasks, defaults, agents }`. */
export function parsePlan(
  value: unknown,
  options: PlanOptions & { readonly source?: string },
): Result<Plan, readonly PlanProblem[]> {
  const document: SourceDocument = { value, lineOf: () => undefined };
  return assemblePlan([{ file: options.source ?? "<plan>", document }], options);
}

/** Joins the tasks of several documents into one plan; reports every problem of every task. */
export function assemblePlan(
  sources: readonly PlanSource[],
  options: PlanOptions,
): Result<Plan, readonly PlanProblem[]> {
  const problems: PlanProblem[] = [];
  const drafts: Draft[] = [];
  const documents = Map.groupBy(sources, ({ file }) => file);
  for (const group of documents.values()) {
    const before = drafts.length;
    for (const { file, document } of group) openDocument(file, document, options, drafts, problems);
    numberDrafts(drafts, before);
  }
  if (drafts.length > MAX_TASKS) {
    const message = `${drafts.length.toLocaleString("en")} tasks are more than one plan may have`;
    const allowed = `at most ${MAX_TASKS.toLocaleString("en")}`;
    return err([
      { file: drafts[0]?.file ?? "<plan>", task: null, field: null, value: drafts.length, message, allowed },
    ]);
  }
  const tasks: TaskSpec[] = [];
  for (const draft of drafts) {
    const task = compileDraft(draft);
    if (task.ok) tasks.push(task.value);
    else problems.push(...task.error.map((problem) => locate(draft, problem)));
  }
  problems.push(...checkGraph(drafts.flatMap(graphEntry)));
  return problems.length > 0 ? err(problems) : ok({ tasks });
}

/** Unpacks the three shapes of a document. */
function openDocument(
  file: string,
  document: SourceDocument,
  options: PlanOptions,
  drafts: Draft[],
  problems: PlanProblem[],
): void {
  const { value, lineOf } = document;
  const { config } = options;
  const surroundings = { defaults: config.defaults, agents: config.agents, hostCpus: options.hostCpus };
  const push = (raw: unknown, prefix: readonly PropertyKey[], around: TaskSurroundings | null): void => {
    drafts.push({
      raw,
      file,
      source: file,
      prefix,
      surroundings: around,
      lineOf: (path) => lineOf([...prefix, ...path]),
    });
  };
  if (Array.isArray(value)) {
    for (const [index, raw] of value.entries()) push(raw, [index], surroundings);
    if (value.length === 0)
      problems.push(problemOf(file, lineOf, { path: [], value, message: "holds no task" }));
    return;
  }
  if (!isMap(value) || !["tasks", "defaults", "agents"].some((key) => Object.hasOwn(value, key))) {
    push(value, [], surroundings);
    return;
  }
  const envelope = planEnvelopeSchema.safeParse(value);
  if (!envelope.success) {
    for (const problem of explainIssues(planEnvelopeSchema, value, envelope.error.issues)) {
      problems.push(problemOf(file, lineOf, problem));
    }
  }
  const around = envelope.success
    ? {
        defaults: mergeDefaults(config.defaults, envelope.data.defaults ?? {}),
        agents: mergeAgents(config.agents, envelope.data.agents),
        hostCpus: options.hostCpus,
      }
    : null;
  const raws = value["tasks"];
  if (!Array.isArray(raws)) return;
  for (const [index, raw] of raws.entries()) push(raw, ["tasks", index], around);
  if (raws.length === 0)
    problems.push(problemOf(file, lineOf, { path: ["tasks"], value: raws, message: "holds no task" }));
}

/** `plan.yaml#3` where a file holds several tasks, counted from 1. */
function numberDrafts(drafts: Draft[], first: number): void {
  if (drafts.length - first < 2) return;
  for (let index = first; index < drafts.length; index += 1) {
    const draft = drafts[index];
    if (draft !== undefined) drafts[index] = { ...draft, source: `${draft.file}#${index - first + 1}` };
  }
}

function compileDraft(draft: Draft): Result<TaskSpec, readonly FieldProblem[]> {
  const parsed = taskSchema.safeParse(draft.raw);
  const problems: FieldProblem[] = [];
  if (!parsed.success) problems.push(...explainIssues(taskSchema, draft.raw, parsed.error.issues));
  if (isMap(draft.raw)) problems.push(...checkAction(draft.raw));
  if (!parsed.success || problems.length > 0) return err(problems);
  if (draft.surroundings === null) return err([]);
  return compileTask(parsed.data, draft.surroundings, draft.source);
}

/** A task without a usable id cannot be part of the graph; its missing id was reported with it. */
function graphEntry(draft: Draft): readonly GraphEntry[] {
  const id = idOf(draft.raw);
  if (id === null || !isMap(draft.raw)) return [];
  const listed = draft.raw["depends_on"];
  const dependsOn = (Array.isArray(listed) ? listed : [listed]).filter((entry) => typeof entry === "string");
  const { file, source, lineOf } = draft;
  return [{ id, dependsOn, priority: 0, file, source, lineOf }];
}

function idOf(raw: unknown): string | null {
  if (!isMap(raw)) return null;
  const id = raw["id"] ?? raw["task_id"];
  return typeof id === "string" ? id : null;
}

function locate(draft: Draft, problem: FieldProblem): PlanProblem {
  const found = problemOf(draft.file, draft.lineOf, problem);
  const task = idOf(draft.raw);
  // A task without an id is known by its place in the document.
  return {
    ...found,
    task,
    field: formatPath(task === null ? [...draft.prefix, ...problem.path] : problem.path),
  };
}

/** Puts a problem into its file and line. */
export function problemOf(
  file: string,
  lineOf: (path: readonly PropertyKey[]) => number | undefined,
  problem: FieldProblem,
): PlanProblem {
  const { path, ...rest } = problem;
  const line = lineOf(path);
  return { file, ...(line === undefined ? {} : { line }), task: null, field: formatPath(path), ...rest };
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
