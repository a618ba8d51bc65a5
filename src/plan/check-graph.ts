import type { TaskId } from "../model/ids.ts";
import { buildDag, type DagProblem } from "../tasks/dag.ts";
import { assertNever } from "../util/assert-never.ts";
import { nearest } from "../util/nearest.ts";
import type { PlanProblem } from "./plan-problem.ts";
import { showValue } from "./plan-problem.ts";

/** What the graph needs of a task, also of one whose other fields are wrong. */
export interface GraphEntry {
  readonly id: string;
  readonly dependsOn: readonly string[];
  readonly priority: number;
  readonly file: string;
  /** File and place in it, as `TaskSpec.source`. */
  readonly source: string;
  lineOf(path: readonly PropertyKey[]): number | undefined;
}

/** A guess costs a comparison with every id; beyond these the person has seen what is wrong. */
const MAX_GUESSES = 50;

/** Ids that occur twice, dependencies that do not exist, cycles. */
export function checkGraph(entries: readonly GraphEntry[]): readonly PlanProblem[] {
  // Ids unfit for paths were reported with their field; here they only have to be told apart.
  const nodes = entries.map(({ id, dependsOn, priority }) => ({
    id: id as TaskId,
    dependsOn: dependsOn.map((dependency) => dependency as TaskId),
    priority,
  }));
  const dag = buildDag(nodes);
  if (dag.ok) return [];
  const byId = new Map(entries.toReversed().map((entry) => [entry.id, entry]));
  let guesses = 0;
  return dag.error.flatMap((problem) => {
    const guess =
      problem.kind === "unknown-dependency" && guesses++ < MAX_GUESSES
        ? nearest(problem.dependency, byId.keys())
        : null;
    return explain(problem, entries, byId, guess);
  });
}

function explain(
  problem: DagProblem,
  entries: readonly GraphEntry[],
  byId: ReadonlyMap<string, GraphEntry>,
  guess: string | null,
): readonly PlanProblem[] {
  switch (problem.kind) {
    case "duplicate-id": {
      const [first, ...others] = problem.indexes.map((index) => entries[index]);
      return others.flatMap((entry) =>
        entry === undefined
          ? []
          : [
              at(
                entry,
                ["id"],
                problem.id,
                `${showValue(problem.id)} is the id of another task already, in ${placeOf(first)}`,
                "another id",
              ),
            ],
      );
    }
    case "self-dependency":
      return [dependencyProblem(byId.get(problem.id), problem.id, "a task cannot wait for itself")];
    case "unknown-dependency": {
      const found = dependencyProblem(
        byId.get(problem.id),
        problem.dependency,
        `${showValue(problem.dependency)} is not a task of this plan`,
      );
      const coded: PlanProblem = { ...found, code: "unknown-dependency" };
      return [guess === null ? coded : { ...coded, hint: `did you mean ${guess}?` }];
    }
    case "cycle": {
      const [first] = problem.path;
      const entry = first === undefined ? undefined : byId.get(first);
      return entry === undefined
        ? []
        : [at(entry, ["depends_on"], problem.path, `cycle: ${problem.path.join(" -> ")}`)];
    }
    default:
      return assertNever(problem);
  }
}

function dependencyProblem(entry: GraphEntry | undefined, dependency: string, message: string): PlanProblem {
  if (entry === undefined) throw new Error(`no task for the dependency on ${dependency}`);
  const index = entry.dependsOn.indexOf(dependency);
  return { ...at(entry, ["depends_on", index], dependency, message), field: "depends_on" };
}

function at(
  entry: GraphEntry,
  path: readonly PropertyKey[],
  value: unknown,
  message: string,
  allowed?: string,
): PlanProblem {
  const line = entry.lineOf(path);
  return {
    file: entry.file,
    ...(line === undefined ? {} : { line }),
    task: entry.id,
    field: path.join("."),
    value,
    message,
    ...(allowed === undefined ? {} : { allowed }),
  };
}

function placeOf(entry: GraphEntry | undefined): string {
  if (entry === undefined) return "the plan";
  const line = entry.lineOf(["id"]);
  return line === undefined ? entry.source : `${entry.file}:${line}`;
}
