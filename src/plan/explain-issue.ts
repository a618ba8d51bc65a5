import type { z } from "zod";
import { nearest } from "../util/nearest.ts";
import { type FieldKind, kindOf, orList } from "./fields.ts";
import { showValue } from "./plan-problem.ts";

/** A problem before it is known in which file and line it lies. */
export interface FieldProblem {
  readonly path: readonly PropertyKey[];
  readonly value: unknown;
  readonly message: string;
  readonly allowed?: string;
  readonly hint?: string;
}

type Issue = z.core.$ZodIssue;
type Schema = z.core.$ZodType;

/**
 * Fields that people look for in the wrong place, or that belong to another tool, by name. Given where a field is unknown and no known
 * name comes near.
 */
const ELSEWHERE: Readonly<Record<string, string>> = {
  slots: "slots goes under defaults of bulkhead.yaml",
  dirty: "dirty goes under defaults of bulkhead.yaml",
  "<<": "merge keys are not part of YAML 1.2; put what tasks share under defaults",
  cmd: "a shell command goes in run, an agent's arguments in command",
  script: "a shell command goes in run",
  name: "the name of a task is id, its heading title",
  description: "a heading goes in title, what to do in prompt, notes in context.notes",
};

/** Says in a person's words what zod has against `root`. `schema` is the one that refused it. */
export function explainIssues(
  schema: Schema,
  root: unknown,
  issues: readonly Issue[],
): readonly FieldProblem[] {
  const problems = issues.flatMap((issue) => explainIssue(schema, root, issue, []));
  // Several checks of one value fail together; the person needs its sentence once.
  const seen = new Set<string>();
  return problems.filter((problem) => {
    const key = `${problem.path.map(String).join("\0")}\0${problem.message}`;
    return seen.size < seen.add(key).size;
  });
}

function explainIssue(
  schema: Schema,
  root: unknown,
  issue: Issue,
  base: readonly PropertyKey[],
): readonly FieldProblem[] {
  const path = [...base, ...issue.path];
  const value = valueAt(root, path);
  const place = walk(schema, root, path);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => explainUnknown(place.schema, path, key, valueAt(root, [...path, key])));
  }
  if (issue.code === "invalid_union") {
    const fitting = issue.errors.find((errors) => errors.every((error) => goesInto(error, value)));
    if (fitting !== undefined && typeof value === "object" && value !== null) {
      return fitting.flatMap((error) => explainIssue(schema, root, error, path));
    }
  }
  if (issue.code === "invalid_key") {
    const kind = keyKind(place.parent) ?? { noun: "a name", allowed: "another" };
    const name = path[path.length - 1];
    return [{ path, value: name, message: `${showValue(name)} is not ${kind.noun}`, allowed: kind.allowed }];
  }
  return [explainValue(issue, path, value, place.kind)];
}

function explainValue(
  issue: Issue,
  path: readonly PropertyKey[],
  value: unknown,
  kind: FieldKind | undefined,
): FieldProblem {
  const allowed = kind === undefined ? {} : { allowed: kind.allowed };
  if (value === undefined) return { path, value, message: "is missing", ...allowed };
  // What a variable is set to may be a secret: it goes neither into the text nor into the problem.
  const isSecret = path.includes("env");
  const shown = isSecret ? withoutContent(value) : showValue(value);
  const base = { path, value: isSecret ? undefined : value, ...allowed };
  if (issue.code === "custom") return { ...base, message: `${shown} ${issue.message}` };
  const message = `${shown} is not ${kind?.noun ?? "what is needed"}`;
  const isUnquoted = issue.code === "invalid_type" && issue.expected === "string" && isBareWord(value);
  return isUnquoted ? { ...base, message, hint: "quotes make it text" } : { ...base, message };
}

/** YAML reads `7` and `true` as no text. */
function isBareWord(value: unknown): boolean {
  return typeof value === "number" || typeof value === "boolean";
}

function explainUnknown(
  schema: Schema,
  parent: readonly PropertyKey[],
  key: string,
  value: unknown,
): FieldProblem {
  const known = Object.keys(shapeOf(schema) ?? {}).filter((name) => name !== "$schema");
  const near = nearest(key, known) ?? homeOf(schema, key);
  const base = { path: [...parent, key], value, message: "unknown field" };
  if (near !== null) return { ...base, hint: `did you mean ${near}?` };
  const hint = Object.hasOwn(ELSEWHERE, key) ? ELSEWHERE[key] : undefined;
  return { ...base, allowed: `one of ${orList(known)}`, ...(hint === undefined ? {} : { hint }) };
}

/** `memory` in a task belongs under `caps`: one level down is searched for the exact name. */
function homeOf(schema: Schema, key: string): string | null {
  for (const [name, child] of Object.entries(shapeOf(schema) ?? {})) {
    const shape = shapeOf(child);
    if (shape !== undefined && Object.hasOwn(shape, key)) return `${name}.${key}`;
  }
  return null;
}

/** The value of a variable may be a secret; its type never is. */
function withoutContent(value: unknown): string {
  return typeof value === "string"
    ? "this text"
    : typeof value === "number"
      ? "this number"
      : showValue(value);
}

/** Whether an alternative of a union got past the value's own type, so that its complaint is about what lies inside. */
function goesInto(error: Issue, value: unknown): boolean {
  if (error.path.length > 0 || error.code === "unrecognized_keys") return true;
  return Array.isArray(value) && (error.code === "too_big" || error.code === "too_small");
}

/** Follows a path through a schema, picking of each union the alternative that has the next step. */
function walk(
  schema: Schema,
  root: unknown,
  path: readonly PropertyKey[],
): { schema: Schema; parent: Schema; kind: FieldKind | undefined } {
  let here = schema;
  let parent = schema;
  let kind = kindOf(schema);
  let value = root;
  for (const step of path) {
    const next = alternatives(here)
      .map((option) => childOf(option, step))
      .find((child) => child !== undefined);
    if (next === undefined) break;
    parent = here;
    here = next;
    value = valueAt(value, [step]);
    kind = kindOf(unwrap(next)) ?? kindOf(next);
  }
  return { schema: here, parent, kind };
}

function childOf(schema: Schema, step: PropertyKey): Schema | undefined {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === "object") return Object.hasOwn(def.shape, step) ? def.shape[String(step)] : undefined;
  if (def.type === "array") return def.element;
  return def.type === "record" ? def.valueType : undefined;
}

function keyKind(schema: Schema): FieldKind | undefined {
  const { def } = (unwrap(schema) as z.core.$ZodTypes)._zod;
  return def.type === "record" ? kindOf(def.keyType) : undefined;
}

function shapeOf(schema: Schema): Readonly<Record<string, Schema>> | undefined {
  for (const option of alternatives(schema)) {
    const { def } = (option as z.core.$ZodTypes)._zod;
    if (def.type === "object") return def.shape;
  }
  return undefined;
}

function alternatives(schema: Schema): readonly Schema[] {
  const bare = unwrap(schema);
  const { def } = (bare as z.core.$ZodTypes)._zod;
  if (def.type === "union") return def.options.flatMap(alternatives);
  return def.type === "pipe" ? alternatives(def.in) : [bare];
}

function unwrap(schema: Schema): Schema {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  return def.type === "optional" ? unwrap(def.innerType) : schema;
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[step];
  }
  return value;
}
