import { quotePath, sanitizeForTerminal } from "../util/sanitize-text.ts";

/** One thing that is wrong with a plan or a configuration file, for a person to put right. */
export interface PlanProblem {
  /** Set where a program has to tell it from the rest. */
  readonly code?: "unknown-dependency";
  /** As it was given on the command line, or `<stdin>`, or the name the library was called with. */
  readonly file: string;
  /** Counts from 1. */
  readonly line?: number;
  readonly task: string | null;
  /** Dotted path in the task or file, e.g. `caps.memory` or `depends_on.0`; null where it is about the whole. */
  readonly field: string | null;
  /** What was found, as it was written. May be large or hostile: print it with `showValue` only. */
  readonly value: unknown;
  readonly message: string;
  /** What would do instead; reads well after "use". */
  readonly allowed?: string;
  readonly hint?: string;
}

const SHOWN_CHARS = 60;

/** One line: `tasks/auth.yaml:12: task "auth": caps.memory: "12 elephants" is not a size; use e.g. 512m, 2GiB`. */
export function formatProblem(problem: PlanProblem): string {
  const place =
    problem.line === undefined ? quotePath(problem.file) : `${quotePath(problem.file)}:${problem.line}`;
  const head = [place];
  if (problem.task !== null) head.push(`task ${showValue(problem.task)}`);
  if (problem.field !== null) head.push(problem.field);
  const tail = [problem.message];
  if (problem.allowed !== undefined) tail.push(`use ${problem.allowed}`);
  if (problem.hint !== undefined) tail.push(problem.hint);
  return sanitizeForTerminal(`${head.join(": ")}: ${tail.join("; ")}`);
}

/** A found value, short and on one line; of lists and maps only what they are, as they may hold anything. */
export function showValue(value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  switch (typeof value) {
    case "string": {
      const short = value.length > SHOWN_CHARS ? `${value.slice(0, SHOWN_CHARS).toWellFormed()}…` : value;
      return JSON.stringify(short);
    }
    case "number":
    case "boolean":
    case "bigint":
      return String(value);
    default:
      return typeof value === "object" ? "a map" : `a ${typeof value}`;
  }
}

/** `["caps", "memory"]` as `caps.memory`, list places counted from 0; null for the empty path. */
export function formatPath(path: readonly PropertyKey[]): string | null {
  if (path.length === 0) return null;
  return path
    .map((step) =>
      typeof step === "string" && !/^[\p{L}\p{N}_$-]+$/u.test(step) ? showValue(step) : String(step),
    )
    .join(".");
}
