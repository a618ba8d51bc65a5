import type { Plan } from "../model/task.ts";
import { err, ok, type Result } from "../util/result.ts";
import { assemblePlan, type PlanOptions, type PlanSource } from "./parse-plan.ts";
import type { PlanProblem } from "./plan-problem.ts";
import { formatOf, type InputFile, listInput, readInputFile, readStdin, STDIN_NAME } from "./read-input.ts";
import { parseSourceText } from "./source-text.ts";

export interface LoadPlanRequest extends PlanOptions {
  /** Files, folders, or `-` for standard input. */
  readonly inputs: readonly string[];
  readonly cwd: string;
  readonly stdin?: NodeJS.ReadableStream;
}

export interface LoadedPlan {
  readonly plan: Plan;
  /** The files that were read, in order. */
  readonly sources: readonly string[];
}

/** Open files at once while a folder is read. */
const READ_BATCH = 32;

/** Reads, parses and checks a plan. Reports every problem of every file, never only the first. */
export async function loadPlan(
  request: LoadPlanRequest,
): Promise<Result<LoadedPlan, readonly PlanProblem[]>> {
  const problems: PlanProblem[] = [];
  const documents: PlanSource[] = [];
  const sources: string[] = [];
  const take = (file: string, text: Result<string, PlanProblem>): void => {
    sources.push(file);
    if (!text.ok) {
      problems.push(text.error);
      return;
    }
    const parsed = parseSourceText(text.value, file, formatOf(file));
    if (parsed.ok) documents.push(...parsed.value.map((document) => ({ file, document })));
    else problems.push(...parsed.error);
  };

  if (request.inputs.length === 0)
    problems.push(inputProblem("<plan>", "no file, folder or - was named; give at least one"));
  const seen = new Set<string>();
  for (const input of request.inputs) {
    if (input === "-") {
      if (request.stdin === undefined || seen.has("-")) {
        const message = seen.has("-") ? "is named twice" : "there is no standard input to read";
        problems.push(inputProblem(STDIN_NAME, message));
      } else take(STDIN_NAME, await readStdin(request.stdin));
      seen.add("-");
      continue;
    }
    const listed = await listInput(input, request.cwd);
    if (!listed.ok) {
      problems.push(...listed.error);
      continue;
    }
    // A file named twice, say by itself and by its folder, is one file.
    const files = listed.value.filter(({ path }) => seen.size < seen.add(path).size);
    for (const { file, text } of await readAll(files)) take(file, text);
  }

  const assembled = assemblePlan(documents, request);
  if (!assembled.ok)
    problems.push(...(problems.length === 0 ? assembled.error : withoutEchoes(assembled.error)));
  if (!assembled.ok || problems.length > 0) return err(inReadingOrder(problems, sources));
  return ok({ plan: assembled.value, sources });
}

async function readAll(
  files: readonly InputFile[],
): Promise<readonly { file: string; text: Result<string, PlanProblem> }[]> {
  const read: { file: string; text: Result<string, PlanProblem> }[] = [];
  for (let start = 0; start < files.length; start += READ_BATCH) {
    const batch = files.slice(start, start + READ_BATCH);
    read.push(
      ...(await Promise.all(
        batch.map(async (input) => ({ file: input.file, text: await readInputFile(input) })),
      )),
    );
  }
  return read;
}

/** By file in the order they were read, then by line. */
function inReadingOrder(
  problems: readonly PlanProblem[],
  sources: readonly string[],
): readonly PlanProblem[] {
  const places = new Map(sources.map((file, index) => [file, index]));
  const placeOf = ({ file }: PlanProblem): number => places.get(file) ?? -1;
  return problems.toSorted((a, b) => placeOf(a) - placeOf(b) || (a.line ?? 0) - (b.line ?? 0));
}

/** Where a file could not be read, its tasks are missing, and that others depend on them says nothing new. */
function withoutEchoes(problems: readonly PlanProblem[]): readonly PlanProblem[] {
  return problems.filter(({ code }) => code !== "unknown-dependency");
}

function inputProblem(file: string, message: string): PlanProblem {
  return { file, task: null, field: null, value: undefined, message };
}
