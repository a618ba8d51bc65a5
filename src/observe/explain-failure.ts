import type { CapReport } from "../model/caps.ts";
import type { AttemptPhase, Failure, ResultProblem } from "../model/failure.ts";
import { unenforcedCaps } from "../policy/caps.ts";
import { assertNever } from "../util/assert-never.ts";
import { formatBytes } from "../util/bytes.ts";
import { formatDuration } from "../util/duration.ts";
import { formatCount } from "../util/format-count.ts";
import { quotePath, sanitizeForTerminal } from "../util/sanitize-text.ts";

/** A failure in words. Plain text without control characters: fit for a terminal and, escaped, for a page. */
export interface Explanation {
  /** One line: what happened, with the limit and the value. */
  readonly headline: string;
  readonly detail: readonly string[];
  /** What to do next. */
  readonly hint: string;
}

/** Problems, files and caps that are listed one by one; the rest is counted. */
const MAX_LISTED = 10;

/** Says what went wrong, against which limit, and what to do. The one place for these words: command line and web both use it. */
export function explainFailure(failure: Failure): Explanation {
  switch (failure.reason) {
    case "exit":
      return explainExit(failure);
    case "timeout":
      return {
        headline: `time limit of ${formatDuration(failure.limitMs)} passed`,
        detail: [
          failure.by === "host"
            ? "Stopped by the supervisor with everything it had started."
            : "Stopped by the limit inside the container, before the supervisor's own.",
        ],
        hint: "raise the task's timeout, or split the task; `bulkhead logs` shows how far it came",
      };
    case "oom":
      return {
        headline: `out of memory: cap ${formatBytes(failure.limitBytes)}, peak ${
          failure.peakBytes === null ? "unknown" : formatBytes(failure.peakBytes)
        }`,
        detail: [
          failure.victim === "main"
            ? `The kernel killed the main process (exit code ${failure.exitCode}).`
            : `The kernel killed a process below the main one, which then ended with exit code ${failure.exitCode}.`,
        ],
        hint: `raise caps.memory above ${formatBytes(failure.limitBytes)}, or let the task use fewer processes at once`,
      };
    case "pids":
      return {
        headline: `process limit of ${formatCount(failure.limit)} reached: ${formatCount(failure.denied)} ${
          failure.denied === 1 ? "fork was" : "forks were"
        } refused`,
        detail: [`The main process ended with exit code ${failure.exitCode}.`],
        hint: `raise caps.pids above ${formatCount(failure.limit)}, or look for a process that starts itself again`,
      };
    case "disk-full":
      return explainDiskFull(failure);
    case "killed":
      return {
        headline: `killed from outside by ${plain(failure.signal)}`,
        detail: [
          "Neither a cap of the task nor bulkhead ended it.",
          ...(failure.evidence === "engine-order" ? ["Somebody had the engine send the signal."] : []),
          ...(failure.evidence === "host-memory" ? ["The host itself was short of memory then."] : []),
        ],
        hint: "look in the host's log (`journalctl -k`) for what ended it; the attempt is retried by itself",
      };
    case "cancelled":
      return { headline: "cancelled", detail: [], hint: "start the run again to do it after all" };
    case "agent-error":
      return {
        headline: `the agent gave up: ${plain(failure.message)}`,
        detail: [],
        hint: "`bulkhead logs` shows what came before it",
      };
    case "engine-lost":
      return {
        headline: `the container engine was lost while ${PHASES[failure.phase]}`,
        detail: [plain(failure.message)],
        hint: "see that the engine runs (`docker info`), then start the run again",
      };
    case "host-error":
      return {
        headline: `the host failed while ${PHASES[failure.phase]}`,
        detail: [plain(failure.message)],
        hint: "`bulkhead doctor` checks the machine",
      };
    case "image-missing":
      return {
        headline: `the engine does not have the image ${plain(failure.image)}`,
        detail: [],
        hint: `build it or pull it: docker pull ${plain(failure.image)}`,
      };
    case "command-not-found":
      return {
        headline: `no such command in the image: ${plain(failure.command)} (exit code ${failure.exitCode})`,
        detail: [],
        hint: "correct the task's command, or take an image that has it",
      };
    case "caps-not-enforced":
      return {
        headline: `refused to start: ${counted(unenforcedCaps(failure.caps).length, "cap is", "caps are")} not enforced on this host`,
        detail: listed(unenforcedCaps(failure.caps).map(describeCap)),
        hint: "leave these caps out, run where the kernel can enforce them, or set caps_mode: report to go on without",
      };
    case "parents-conflict":
      return {
        headline: `the patches of ${failure.parents.map(plain).join(" and ")} do not fit together`,
        detail: listed(failure.files.map((file) => `conflict in ${plain(quotePath(file))}`)),
        hint: "let one of them depend on the other, or keep them out of each other's files",
      };
    case "result-refused":
      return {
        headline: `the result was refused: ${counted(failure.problems.length, "problem", "problems")} in the workspace`,
        detail: listed(failure.problems.map(describeProblem)),
        hint: "have the task remove these files, or name them in .gitignore; nothing of this attempt was taken",
      };
    case "runner-bug":
      return {
        headline: `bulkhead itself failed while ${PHASES[failure.phase]}`,
        detail: [plain(failure.message)],
        hint: "this is a bug: please report it with supervisor.log from the state directory",
      };
    default:
      return assertNever(failure);
  }
}

const PHASES: Readonly<Record<AttemptPhase, string>> = {
  snapshot: "preparing the workspace",
  door: "opening the door",
  create: "creating the container",
  start: "starting the container",
  wait: "waiting for the container",
  collect: "reading the result",
  release: "cleaning up",
};

function explainExit(failure: Extract<Failure, { reason: "exit" }>): Explanation {
  const signal = failure.signal === undefined ? "" : ` (${plain(failure.signal)})`;
  return {
    headline: `ended with exit code ${failure.exitCode}${signal}`,
    detail: [
      ...(failure.signal === "SIGKILL" || failure.signal === "SIGTERM"
        ? ["Nobody had the engine send the signal: it came from the task itself."]
        : []),
      ...(failure.hint === undefined ? [] : [plain(failure.hint)]),
    ],
    hint: "`bulkhead logs` shows its output",
  };
}

function explainDiskFull(failure: Extract<Failure, { reason: "disk-full" }>): Explanation {
  const limit = formatBytes(failure.limitBytes);
  const used = failure.peakBytes === undefined ? "" : `, ${formatBytes(failure.peakBytes)} in use`;
  const end =
    failure.by === "watch"
      ? "No kernel limit holds the workspace here: bulkhead measured it and ended the attempt."
      : `The main process ended with exit code ${failure.exitCode}.`;
  const detail = [
    ...(failure.of === "files" ? ["It ran out of room for further files, not of bytes."] : []),
    end,
  ];
  if (failure.cap === "tmp") {
    const place = plain(failure.place ?? "/tmp");
    return {
      headline: `disk full: ${place} may hold ${limit}${used}`,
      detail,
      hint: `raise caps.tmp above ${limit} (it counts against caps.memory), or write large files to the workspace`,
    };
  }
  return {
    headline: `disk full: the workspace may hold ${limit} of changes${used}`,
    detail,
    hint: `raise caps.disk above ${limit}, or keep build output out of the workspace`,
  };
}

const BYTE_CAPS: ReadonlySet<string> = new Set([
  "memory",
  "swap",
  "disk",
  "tmp",
  "ioReadBytes",
  "ioWriteBytes",
]);

/** One cap in words: `memory: asked for 512 MiB, not enforced (no such controller)`. */
export function describeCap(report: CapReport): string {
  const unit = (value: number): string =>
    BYTE_CAPS.has(report.cap) ? formatBytes(value) : String(Math.round(value * 1000) / 1000);
  const note = report.note === undefined ? "" : ` (${plain(report.note)})`;
  if (report.state === "not-requested") return `${report.cap}: no cap asked for${note}`;
  const asked = report.requested === null ? "" : unit(report.requested);
  if (report.state === "enforced") return `${report.cap}: ${asked} enforced${note}`;
  const found = report.actual === null ? "" : `, the kernel says ${unit(report.actual)}`;
  return `${report.cap}: asked for ${asked}${found}, not enforced${note}`;
}

const PROBLEMS: Readonly<Record<ResultProblem["kind"], string>> = {
  "special-file": "a device, socket or pipe",
  "symlink-outside": "a link that leads out of the repository",
  "git-directory": "a git directory of its own",
  "too-many-files": "too many files",
  "too-many-bytes": "too large",
  "path-too-long": "its path is too long",
  "too-deep": "nested too deep",
  unreadable: "cannot be read",
  "bad-name": "a name that git refuses",
};

function describeProblem(problem: ResultProblem): string {
  const detail = problem.detail === "" ? "" : ` (${plain(problem.detail)})`;
  return `${plain(quotePath(problem.path))}: ${PROBLEMS[problem.kind]}${detail}`;
}

function listed(lines: readonly string[]): string[] {
  if (lines.length <= MAX_LISTED) return [...lines];
  return [...lines.slice(0, MAX_LISTED), `and ${formatCount(lines.length - MAX_LISTED)} more`];
}

function counted(count: number, one: string, many: string): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

function plain(text: string): string {
  return sanitizeForTerminal(text, { maxChars: 500 });
}
