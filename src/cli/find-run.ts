import type { RunId, TaskId } from "../model/ids.ts";
import { RunnerError } from "../model/runner-error.ts";
import { applyEvent, createRunView, type RunView, type TaskView } from "../observe/run-view.ts";
import type { EventStore } from "../store/store.ts";
import { nearest } from "../util/nearest.ts";

const MAX_NAMED = 5;

/**
 * The run that `text` means: the newest where it is left out or `latest`, else the one whose id is, begins with or ends with it.
 * Throws RunnerError `run-not-found`, naming the candidates where there are several.
 */
export function findRun(store: EventStore, text: string | undefined): RunId {
  const runs = store.runs();
  const newest = runs[0];
  if (newest === undefined) {
    throw new RunnerError("run-not-found", "there are no runs yet", {
      hint: "start one with `bulkhead run PLAN`; another state directory is chosen with BULKHEAD_STATE_DIR",
    });
  }
  if (text === undefined || text === "latest") return newest;
  const exact = runs.find((run) => run === text);
  if (exact !== undefined) return exact;
  const matching = runs.filter((run) => text !== "" && (run.startsWith(text) || run.endsWith(text)));
  const [first] = matching;
  if (first !== undefined && matching.length === 1) return first;
  if (matching.length > 1) {
    const more = matching.length > MAX_NAMED ? ` and ${matching.length - MAX_NAMED} more` : "";
    throw new RunnerError("run-not-found", `"${text}" means ${matching.length} runs`, {
      data: { candidates: matching.slice(0, MAX_NAMED) },
      hint: `be more exact: ${matching.slice(0, MAX_NAMED).join(", ")}${more}`,
    });
  }
  throw new RunnerError("run-not-found", `there is no run "${text}"`, {
    hint: `the newest is ${newest}; \`bulkhead status --all\` lists them`,
  });
}

/** The fold of one run's log. */
export function readRun(store: EventStore, runId: RunId): RunView {
  const view = createRunView();
  for (const event of store.read(runId)) applyEvent(view, event);
  return view;
}

/** The tasks with these ids, in the order of the plan; all where none is named. Throws RunnerError `task-not-found`. */
export function findTasks(view: RunView, ids: readonly string[]): TaskView[] {
  const known = new Set<string>(view.tasks.keys());
  for (const id of ids) {
    if (known.has(id)) continue;
    const close = nearest(id, [...known]);
    throw new RunnerError("task-not-found", `run ${view.runId ?? ""} has no task "${id}"`, {
      hint:
        close === null ? `\`bulkhead status ${view.runId ?? ""}\` lists its tasks` : `did you mean ${close}?`,
    });
  }
  const wanted = new Set(ids);
  return [...view.tasks.values()].filter((task) => wanted.size === 0 || wanted.has(task.spec.id));
}

/** The settings of a run; every run has them in its first event. */
export function settingsOf(view: RunView): NonNullable<RunView["settings"]> {
  if (view.settings !== null) return view.settings;
  throw new RunnerError("internal", `the log of run ${view.runId ?? ""} does not begin with run-submitted`, {
    hint: "`bulkhead audit verify` checks the log",
  });
}

/** Narrows text that was matched against the view's own ids. */
export function taskIdOf(view: RunView, id: string): TaskId {
  const [task] = findTasks(view, [id]);
  if (task === undefined) throw new RunnerError("task-not-found", `no task "${id}"`);
  return task.spec.id;
}
