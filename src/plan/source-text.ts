import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";
import { err, ok, type Result } from "../util/result.ts";
import { MAX_DEPTH, parseJsonText } from "./json-text.ts";
import { formatPath, type PlanProblem } from "./plan-problem.ts";

/** One document of a file: its plain value, and the line of each of its parts. */
export interface SourceDocument {
  readonly value: unknown;
  /** Line (from 1) of the field at `path`, or of the nearest thing around it. */
  lineOf(path: readonly PropertyKey[]): number | undefined;
}

/** `auto` looks at the first character: stdin has no file name. */
export type TextFormat = "json" | "yaml" | "auto";

/** An alias bomb repeats a few anchors many times; people repeat them a handful of times. */
const MAX_ALIAS_COUNT = 50;
const MAX_REPORTED = 20;
const TOO_DEEP = `nested more than ${MAX_DEPTH} deep`;

/** Parses the text of a file into its documents. Nothing in it is executed, resolved or included. */
export function parseSourceText(
  text: string,
  file: string,
  format: TextFormat,
): Result<readonly SourceDocument[], readonly PlanProblem[]> {
  if (text.trim() === "") return err([emptyProblem(file)]);
  if (format === "json") return parseJson(text, file, false);
  if (format === "yaml" || !/^\s*[[{]/.test(text)) return parseYaml(text, file);
  const json = parseJson(text, file, true);
  if (json.ok) return json;
  // A YAML file may also begin with a brace; the JSON message is the better one where it is neither.
  const yaml = parseYaml(text, file);
  return yaml.ok ? yaml : json;
}

function parseJson(
  text: string,
  file: string,
  many: boolean,
): Result<readonly SourceDocument[], readonly PlanProblem[]> {
  const parsed = parseJsonText(text, { many });
  const starts = lineStarts(text);
  if (!parsed.ok) {
    const { offset, message, path } = parsed.error;
    const { line, column } = lineAt(starts, offset);
    if (path !== undefined) return err([{ ...problemAt(file, line, message), field: formatPath(path) }]);
    return err([problemAt(file, line, `not valid JSON at column ${column}: ${message}`)]);
  }
  return ok(
    parsed.value.values.map(({ value }, index) => ({
      value,
      lineOf: (path) => lineAt(starts, parsed.value.offsetOf(index, path)).line,
    })),
  );
}

function parseYaml(text: string, file: string): Result<readonly SourceDocument[], readonly PlanProblem[]> {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, {
    lineCounter: lines,
    // The library compares each key with all before it; `checkTree` is linear.
    uniqueKeys: false,
    merge: false,
    prettyErrors: false,
    logLevel: "error",
  });
  if (!Array.isArray(documents)) return err([emptyProblem(file)]);
  const problems: PlanProblem[] = [];
  const result: SourceDocument[] = [];
  for (const document of documents) {
    // A warning is a tag that nobody resolves: its value would silently be something else than was written.
    for (const fault of [...document.errors, ...document.warnings].slice(0, MAX_REPORTED)) {
      const { line, col } = lines.linePos(fault.pos[0]);
      if (fault.code === "RESOURCE_EXHAUSTION") {
        problems.push(problemAt(file, line, TOO_DEEP));
        break;
      }
      problems.push(problemAt(file, line, `not valid YAML at column ${col}: ${lowerFirst(fault.message)}`));
    }
    if (document.errors.length > 0 || document.warnings.length > 0) continue;
    if (document.contents === null || (isScalar(document.contents) && document.contents.value === null))
      continue;
    const root: Node = document.contents;
    const faults = checkTree(root, lines, file);
    problems.push(...faults);
    if (faults.length > 0) continue;
    const value = toPlain(document, file);
    if (!value.ok) problems.push(value.error);
    else {
      result.push({ value: value.value, lineOf: (path) => lineOfNode(root, path, lines) });
    }
  }
  if (problems.length > 0) return err(problems);
  if (result.length === 0) return err([emptyProblem(file)]);
  return ok(result);
}

interface OpenNode {
  readonly node: unknown;
  readonly path: readonly PropertyKey[];
  /** Anchors of the nodes around it. */
  readonly anchors: readonly string[];
}

/**
 * A key given twice would drop the first in silence; nesting without end, or an alias inside of what it stands for, would run out of
 * stack further on.
 */
function checkTree(root: Node, lines: LineCounter, file: string): readonly PlanProblem[] {
  const problems: PlanProblem[] = [];
  const open: OpenNode[] = [{ node: root, path: [], anchors: [] }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, path } = next;
    if (path.length > MAX_DEPTH) return [problemAt(file, lineOfNode(root, path, lines), TOO_DEEP)];
    if (isAlias(node) && next.anchors.includes(node.source)) {
      return [
        problemAt(
          file,
          lineOfNode(root, path, lines),
          `the alias *${node.source} stands inside of its own anchor`,
        ),
      ];
    }
    if (!isMap(node) && !isSeq(node)) continue;
    const anchors = node.anchor === undefined ? next.anchors : [...next.anchors, node.anchor];
    if (isSeq(node)) {
      for (const [index, item] of node.items.entries())
        open.push({ node: item, path: [...path, index], anchors });
      continue;
    }
    const keys = new Set<string>();
    for (const { key, value } of node.items) {
      const name = keyName(key);
      if (keys.has(name) && problems.length < MAX_REPORTED) {
        const offset = isScalar(key) ? key.range?.[0] : undefined;
        const line = offset === undefined ? undefined : lines.linePos(offset).line;
        problems.push({ ...problemAt(file, line, "is given twice"), field: formatPath([...path, name]) });
      }
      keys.add(name);
      if (!isScalar(value)) open.push({ node: value, path: [...path, name], anchors });
    }
  }
  return problems;
}

function keyName(key: unknown): string {
  return isScalar(key) ? String(key.value) : String(key);
}

/** The library throws ReferenceError for an unknown alias and for too many: both are the writer's, not ours. */
function toPlain(
  document: { toJS(options: { maxAliasCount: number }): unknown },
  file: string,
): Result<unknown, PlanProblem> {
  try {
    return ok(document.toJS({ maxAliasCount: MAX_ALIAS_COUNT }));
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    return err(
      problemAt(
        file,
        undefined,
        "an alias (*name) has no anchor (&name) before it, or aliases repeat too much",
        `at most ${MAX_ALIAS_COUNT} repeats are expanded`,
      ),
    );
  }
}

function lineOfNode(root: Node, path: readonly PropertyKey[], lines: LineCounter): number | undefined {
  let node: unknown = root;
  let offset = root.range?.[0];
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => keyName(key) === String(step));
      if (pair === undefined) break;
      offset = (isScalar(pair.key) ? pair.key.range?.[0] : undefined) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      const item = node.items[Number(step)];
      if (item === undefined) break;
      offset = (item as Node).range?.[0] ?? offset;
      node = item;
    } else break;
  }
  return offset === undefined ? undefined : lines.linePos(offset).line;
}

/** Offsets at which lines begin. */
function lineStarts(text: string): readonly number[] {
  const starts = [0];
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", end + 1)) starts.push(end + 1);
  return starts;
}

function lineAt(starts: readonly number[], offset: number): { line: number; column: number } {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
}

function lowerFirst(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}

function emptyProblem(file: string): PlanProblem {
  return problemAt(file, undefined, "is empty", "a task needs at least id and run");
}

function problemAt(file: string, line: number | undefined, message: string, hint?: string): PlanProblem {
  return {
    file,
    ...(line === undefined ? {} : { line }),
    task: null,
    field: null,
    value: undefined,
    message,
    ...(hint === undefined ? {} : { hint }),
  };
}
