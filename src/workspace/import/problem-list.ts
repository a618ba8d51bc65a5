import type { Failure, ResultProblem } from "../../model/failure.ts";
import { showPath } from "../path-bytes.ts";

/** A bounded list of what keeps a result from becoming a patch. */
export interface ProblemList {
  add(path: Buffer, kind: ResultProblem["kind"], detail: string): void;
  /** True once the list is full or a budget is spent: reading on would only cost. */
  readonly isOver: boolean;
  readonly isEmpty: boolean;
  failure(): Failure;
}

const MAX_PROBLEMS = 50;
/** Kinds after which the walk ends at once. */
const FINAL: ReadonlySet<ResultProblem["kind"]> = new Set(["too-many-files", "too-many-bytes"]);

/** Makes an empty list. */
export function createProblemList(): ProblemList {
  const problems: ResultProblem[] = [];
  let over = false;
  return {
    add(path, kind, detail) {
      if (problems.length < MAX_PROBLEMS) problems.push({ path: showPath(path), kind, detail });
      if (problems.length >= MAX_PROBLEMS || FINAL.has(kind)) over = true;
    },
    get isOver() {
      return over;
    },
    get isEmpty() {
      return problems.length === 0;
    },
    failure() {
      return { reason: "result-refused", fault: "agent", problems };
    },
  };
}
