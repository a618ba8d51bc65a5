import type { TaskId } from "../model/ids.ts";
import type { Patch } from "../model/patch.ts";
import { RunnerError } from "../model/runner-error.ts";
import { explainFailure } from "../observe/explain-failure.ts";
import type { RunView, TaskView } from "../observe/run-view.ts";
import { findTasks } from "./find-run.ts";

export interface ChosenPatches {
  /** Dependencies before what needs them; tasks that changed nothing are left out. */
  readonly patches: ReadonlyArray<{ readonly taskId: TaskId; readonly patch: Patch }>;
  /** Tasks that nobody named but that a named one needs. */
  readonly brought: readonly TaskId[];
  /** Chosen tasks without a change. */
  readonly empty: readonly TaskId[];
  /** Not taken because they did not succeed (only where no task was named). */
  readonly left: readonly TaskId[];
}

/**
 * What `apply` takes: the named tasks with everything they depend on, or every task that succeeded. A named task that did not
 * succeed is refused with the reason (RunnerError `apply-refused`).
 */
export function choosePatches(view: RunView, ids: readonly string[]): ChosenPatches {
  const all = [...view.tasks.values()];
  const named = ids.length === 0 ? all.filter((task) => task.state === "succeeded") : findTasks(view, ids);
  const wanted = new Set<TaskId>();
  const open = [...named];
  for (let task = open.pop(); task !== undefined; task = open.pop()) {
    if (wanted.has(task.spec.id)) continue;
    if (task.patch === null) {
      throw new RunnerError(
        "apply-refused",
        `${task.spec.id} cannot be applied: ${explainMissingPatch(task)}`,
        {
          data: { task: task.spec.id, state: task.state },
          hint: "only tasks that succeeded have a patch; leave the tasks out to apply all of those",
        },
      );
    }
    wanted.add(task.spec.id);
    for (const id of task.spec.dependsOn) {
      const needed = view.tasks.get(id);
      if (needed !== undefined) open.push(needed);
    }
  }
  const ordered = inOrder(all.filter((task) => wanted.has(task.spec.id)));
  const namedIds = new Set(named.map((task) => task.spec.id));
  return {
    patches: ordered.flatMap(({ spec, patch }) =>
      patch === null || patch.empty ? [] : [{ taskId: spec.id, patch }],
    ),
    brought: ordered.map((task) => task.spec.id).filter((id) => !namedIds.has(id)),
    empty: ordered.filter((task) => task.patch?.empty === true).map((task) => task.spec.id),
    left: ids.length > 0 ? [] : all.filter((task) => task.patch === null).map((task) => task.spec.id),
  };
}

/** Dependencies first, else in the order of the plan. */
function inOrder(tasks: readonly TaskView[]): TaskView[] {
  const byId = new Map(tasks.map((task) => [task.spec.id, task]));
  const done = new Set<TaskId>();
  const ordered: TaskView[] = [];
  for (const root of tasks) {
    // Depth first with a stack of its own: a chain can be as long as the plan.
    const stack: Array<{ task: TaskView; next: number }> = [{ task: root, next: 0 }];
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      if (done.has(top.task.spec.id)) {
        stack.pop();
        continue;
      }
      const id = top.task.spec.dependsOn[top.next];
      top.next += 1;
      const needed = id === undefined ? undefined : byId.get(id);
      if (needed !== undefined) stack.push({ task: needed, next: 0 });
      else if (id === undefined) {
        done.add(top.task.spec.id);
        ordered.push(top.task);
        stack.pop();
      }
    }
  }
  return ordered;
}

/** Why a task has no patch, in a few words. */
export function explainMissingPatch(task: TaskView): string {
  switch (task.state) {
    case "failed":
      return `it failed: ${task.failure === null ? "no reason was logged" : explainFailure(task.failure).headline}`;
    case "held":
      return `it was held, because ${task.heldBecause ?? "a task it needs"} did not succeed`;
    case "cancelled":
      return "it was cancelled";
    case "waiting":
    case "retrying":
    case "running":
      return `it is not done (${task.state})`;
    case "succeeded":
      return "its patch is not in the log";
  }
}
