import type { PatchRisk, PatchSecret } from "../../model/patch.ts";
import { explainFailure } from "../../observe/explain-failure.ts";
import type { PatchSummary, RunView, TaskView } from "../../observe/run-view.ts";
import { TASK_STATES } from "../../observe/run-view.ts";
import { explainRisk } from "../../policy/risks.ts";
import { formatDuration } from "../../util/duration.ts";
import { formatCount } from "../../util/format-count.ts";
import { quotePath, sanitizeForTerminal } from "../../util/sanitize-text.ts";
import { type Palette, STATE_STYLES } from "./palette.ts";

/** `3 files +40 -2`, `no changes`. */
export function describePatch(summary: PatchSummary): string {
  if (summary.files === 0) return "no changes";
  const files = counted(summary.files, "file", "files");
  const lines = `+${formatCount(summary.insertions)} -${formatCount(summary.deletions)}`;
  const binaries = summary.binaries === 0 ? "" : `, ${formatCount(summary.binaries)} binary`;
  return `${files} ${lines}${binaries}`;
}

const MAX_SECRETS_SHOWN = 10;

/** `src/config.ts:12 github-token`, one a line. Safe to show: a finding never says what it found. */
export function describeSecrets(secrets: readonly PatchSecret[]): string[] {
  const shown = secrets.slice(0, MAX_SECRETS_SHOWN).map(({ path, line, rule }) => {
    const place = sanitizeForTerminal(path) + (line === null ? "" : `:${line}`);
    return `${place} ${rule === "not-scanned" ? "too large to look through" : rule}`;
  });
  const more = secrets.length - shown.length;
  return more === 0 ? shown : [...shown, `and ${more} more`];
}

/** Where patches went: `the work tree`, `branch x`. Safe to show. */
export function describeTarget(target: string): string {
  if (target === "worktree") return "the work tree";
  return `branch ${sanitizeForTerminal(target.replace(/^refs\/heads\//, ""))}`;
}

const MAX_RISKY_PATHS_SHOWN = 5;

/** `ci-config: .github/workflows/ci.yml; it runs on build servers`, a line for each rule. */
export function describeRisks(risks: readonly PatchRisk[]): string[] {
  return risks.map(({ rule, files, paths }) => {
    const shown = paths.slice(0, MAX_RISKY_PATHS_SHOWN).map((path) => sanitizeForTerminal(quotePath(path)));
    const more = files > shown.length ? ` and ${formatCount(files - shown.length)} more` : "";
    return `${rule}: ${shown.join(", ")}${more}; ${explainRisk(rule)}`;
  });
}

/** One line on how a task stands, for a table or a live view. Plain text, safe to show. */
export function describeTask(view: RunView, task: TaskView, nowMs: number): string {
  switch (task.state) {
    case "waiting":
      return describeWaiting(view, task);
    case "running":
      return describeRunning(task);
    case "retrying": {
      const inMs = Math.max(0, (task.retryDueMs ?? nowMs) - nowMs);
      return `attempt ${task.attempt + 1} in ${formatDuration(Math.ceil(inMs / 1000) * 1000)}: ${headline(task)}`;
    }
    case "succeeded":
      return task.patchSummary === null ? "" : describePatch(task.patchSummary);
    case "failed":
      return headline(task);
    case "held":
      return `needs ${task.heldBecause ?? "a task"}, which did not succeed`;
    case "cancelled":
      return "cancelled";
  }
}

const MAX_NAMED_DEPENDENCIES = 4;

function describeWaiting(view: RunView, task: TaskView): string {
  const open = task.spec.dependsOn.filter((id) => view.tasks.get(id)?.state !== "succeeded");
  if (open.length === 0) return "ready";
  const named = open.slice(0, MAX_NAMED_DEPENDENCIES).join(", ");
  return `waits for ${named}${open.length > MAX_NAMED_DEPENDENCIES ? ` and ${open.length - MAX_NAMED_DEPENDENCIES} more` : ""}`;
}

function describeRunning(task: TaskView): string {
  if (task.stopOrdered !== null) {
    return task.stopOrdered === "timeout" ? "time limit passed, stopping" : "stopping";
  }
  if (task.status !== null) {
    const percent = task.status.percent === null ? "" : `${Math.round(task.status.percent)} % `;
    return percent + sanitizeForTerminal(task.status.message ?? task.status.state).trim();
  }
  if (task.containerId !== null) return "";
  return task.driver === null ? "preparing the workspace" : "starting the container";
}

function headline(task: TaskView): string {
  return task.failure === null ? "failed" : explainFailure(task.failure).headline;
}

/** How long the task took or has been taking; null before it started. */
export function taskDurationMs(task: TaskView, nowMs: number): number | null {
  return task.startedMs === null ? null : Math.max(0, (task.endedMs ?? nowMs) - task.startedMs);
}

/** `3 running · 2 waiting · 5 succeeded`; states without a task are left out. */
export function describeCounts(view: RunView, palette: Palette): string {
  const order = ["running", "retrying", "waiting", "succeeded", "failed", "held", "cancelled"] as const;
  return order
    .filter((state) => view.counts[state] > 0)
    .map((state) => palette.paint(STATE_STYLES[state], `${formatCount(view.counts[state])} ${state}`))
    .join(palette.separator);
}

/** `1 file`, `2 files`. */
export function counted(count: number, one: string, many: string): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Columns of the longest state name. */
export const STATE_WIDTH = Math.max(...TASK_STATES.map((state) => state.length));
