/**
 * The graph of a run: who waits for whom. Tasks are numbered in plan order and edges hold numbers, so that building, growing and walking
 * cost O(tasks + edges) with nothing but arrays. Every walk is a loop: a chain of 100,000 tasks must not end in a stack overflow.
 */
import type { TaskId } from "../model/ids.ts";
import { nearest } from "../util/nearest.ts";
import { err, ok, type Result } from "../util/result.ts";

export interface DagNode {
  readonly id: TaskId;
  readonly dependsOn: readonly TaskId[];
  readonly priority: number;
}

/** Only `buildDag`, `addNode` and `addNodes` write to it. A task's index is its place in plan order; later tasks go behind. */
export interface Dag {
  readonly ids: TaskId[];
  readonly priorities: number[];
  readonly indexes: Map<TaskId, number>;
  /** By index: what the task waits for, each once, in plan order. */
  readonly dependencies: number[][];
  /** By index: the tasks that wait for it, in plan order. */
  readonly dependents: number[][];
}

export type DagProblem =
  /** `indexes`: places in the list that was given, the first one included; -1 is a task that the run had already. */
  | { readonly kind: "duplicate-id"; readonly id: TaskId; readonly indexes: readonly number[] }
  | {
      readonly kind: "unknown-dependency";
      readonly id: TaskId;
      readonly dependency: TaskId;
      /** The known id that was probably meant, where one comes near. */
      readonly nearest: string | null;
    }
  | { readonly kind: "self-dependency"; readonly id: TaskId }
  /** Each task in `path` depends on the next one; the last is the first again. */
  | { readonly kind: "cycle"; readonly path: readonly TaskId[] };

/** A suggestion compares an id with all others: past this many the plan is wrong as a whole and the time is better saved. */
const MAX_SUGGESTIONS = 20;

/** Checks the nodes and links them; reports every problem found, not only the first. */
export function buildDag(nodes: readonly DagNode[]): Result<Dag, readonly DagProblem[]> {
  return addNodes({ ids: [], priorities: [], indexes: new Map(), dependencies: [], dependents: [] }, nodes);
}

/** Adds one task to a graph in place; see `addNodes`. */
export function addNode(dag: Dag, node: DagNode): Result<Dag, readonly DagProblem[]> {
  return addNodes(dag, [node]);
}

/**
 * Adds tasks to a graph in place, all or, with a problem, none. They may depend on each other and on what is there already. Nothing that
 * is there already can depend on them (it would have been refused as unknown), so a cycle can only lie among the new ones and the cost is
 * that of the new nodes and edges.
 */
export function addNodes(dag: Dag, nodes: readonly DagNode[]): Result<Dag, readonly DagProblem[]> {
  const first = dag.ids.length;
  const { dependencies, problems } = resolve(dag, nodes);
  if (problems.length > 0) return err(problems);
  for (const [place, node] of nodes.entries()) {
    dag.indexes.set(node.id, first + place);
    dag.ids.push(node.id);
    dag.priorities.push(node.priority);
    dag.dependencies.push(dependencies[place] ?? []);
    dag.dependents.push([]);
  }
  for (let index = first; index < dag.ids.length; index += 1) {
    for (const dependency of dag.dependencies[index] ?? []) dag.dependents[dependency]?.push(index);
  }
  return ok(dag);
}

/** What `addNodes` would refuse; the graph stays as it is. For callers that must answer before the fact is told to the scheduler. */
export function checkNodes(dag: Dag, nodes: readonly DagNode[]): readonly DagProblem[] {
  return resolve(dag, nodes).problems;
}

/** Turns ids into indexes (the new nodes behind those of the graph) and collects what is wrong. */
function resolve(
  dag: Dag,
  nodes: readonly DagNode[],
): { readonly dependencies: readonly number[][]; readonly problems: readonly DagProblem[] } {
  const first = dag.ids.length;
  const fresh = new Map<TaskId, number>();
  const problems = findDuplicates(dag, nodes, fresh);
  const dependencies: number[][] = [];
  let suggestions = 0;
  for (const node of nodes) {
    const edges: number[] = [];
    for (const dependency of new Set(node.dependsOn)) {
      const index = dag.indexes.get(dependency) ?? offset(fresh.get(dependency), first);
      if (dependency === node.id) problems.push({ kind: "self-dependency", id: node.id });
      else if (index !== undefined) edges.push(index);
      else {
        suggestions += 1;
        const candidates = suggestions > MAX_SUGGESTIONS ? [] : [...dag.ids, ...fresh.keys()];
        const meant = nearest(
          dependency,
          candidates.filter((id) => id !== node.id),
        );
        problems.push({ kind: "unknown-dependency", id: node.id, dependency, nearest: meant });
      }
    }
    dependencies.push(edges.sort((a, b) => a - b));
  }
  for (const cycle of findCycles(dependencies, first)) {
    problems.push({ kind: "cycle", path: cycle.map((place) => nodeAt(nodes, place).id) });
  }
  return { dependencies, problems };
}

/** Fills `fresh` with the first place of each new id. */
function findDuplicates(dag: Dag, nodes: readonly DagNode[], fresh: Map<TaskId, number>): DagProblem[] {
  const repeats = new Map<TaskId, number[]>();
  for (const [place, { id }] of nodes.entries()) {
    const before = dag.indexes.has(id) ? -1 : fresh.get(id);
    if (before === undefined) fresh.set(id, place);
    else {
      const places = repeats.get(id);
      if (places) places.push(place);
      else repeats.set(id, [before, place]);
    }
  }
  return Array.from(repeats, ([id, indexes]) => ({ kind: "duplicate-id", id, indexes }));
}

/**
 * Disjoint cycles among the new nodes, at least one if there is any; places relative to `first`. Nodes that wait for nothing new are taken
 * off until none is left; each node that stays waits for another one that stays, so that following one such edge from node to node must
 * come back to where it has been.
 */
function findCycles(dependencies: readonly (readonly number[])[], first: number): number[][] {
  const count = dependencies.length;
  const waiting = new Uint32Array(count);
  const dependents: number[][] = Array.from({ length: count }, () => []);
  for (const [place, edges] of dependencies.entries()) {
    for (const index of edges) {
      if (index < first) continue;
      waiting[place] = at(waiting, place) + 1;
      dependents[index - first]?.push(place);
    }
  }
  const free: number[] = [];
  for (let place = 0; place < count; place += 1) if (at(waiting, place) === 0) free.push(place);
  for (let place = free.pop(); place !== undefined; place = free.pop()) {
    for (const dependent of dependents[place] ?? []) {
      const left = at(waiting, dependent) - 1;
      waiting[dependent] = left;
      if (left === 0) free.push(dependent);
    }
  }

  const cycles: number[][] = [];
  const walkOf = new Int32Array(count).fill(-1);
  for (let start = 0; start < count; start += 1) {
    const walk: number[] = [];
    let place = start;
    while (at(waiting, place) > 0 && walkOf[place] === -1) {
      walkOf[place] = start;
      walk.push(place);
      const next = dependencies[place]?.find((index) => index >= first && at(waiting, index - first) > 0);
      if (next === undefined) throw new Error("a task that waits has nothing to wait for");
      place = next - first;
    }
    if (walk.length > 0 && walkOf[place] === start) cycles.push([...walk.slice(walk.indexOf(place)), place]);
  }
  return cycles;
}

function offset(place: number | undefined, by: number): number | undefined {
  return place === undefined ? undefined : place + by;
}

function at(counters: Uint32Array, place: number): number {
  return counters[place] ?? 0;
}

function nodeAt(nodes: readonly DagNode[], place: number): DagNode {
  const node = nodes[place];
  if (!node) throw new Error(`no node at ${place} of ${nodes.length}`);
  return node;
}
