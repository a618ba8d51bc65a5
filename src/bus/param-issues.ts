import type { z } from "zod";
import { type RpcError, rpcError } from "../protocol/json-rpc.ts";

/** One thing wrong with the params: which field, what was sent, what is allowed. */
export interface ParamIssue {
  readonly field: string;
  readonly got: string;
  readonly allowed: string;
}

const MAX_ISSUES = 5;
const MAX_SHOWN_CHARS = 60;

/** Turns a schema's complaints about `params` into one -32602 that a model can correct itself from. */
export function invalidParams(
  issues: readonly z.core.$ZodIssue[],
  params: unknown,
  fields: readonly string[],
): RpcError {
  const shown = issues.slice(0, MAX_ISSUES).map((issue) => explainIssue(issue, params, fields));
  const text = shown.map((issue) => `${issue.field}: got ${issue.got}; ${issue.allowed}`).join(" | ");
  return rpcError("invalid-params", text, { issues: shown });
}

function explainIssue(issue: z.core.$ZodIssue, params: unknown, fields: readonly string[]): ParamIssue {
  if (issue.code === "unrecognized_keys") {
    const allowed =
      fields.length === 0 ? "the method takes no params" : `the fields are ${fields.join(", ")}`;
    return { field: "params", got: issue.keys.slice(0, MAX_ISSUES).map(shorten).join(", "), allowed };
  }
  const field = issue.path.length === 0 ? "params" : issue.path.map(String).join(".");
  return { field, got: shorten(valueAt(params, issue.path)), allowed: issue.message };
}

function valueAt(params: unknown, path: readonly PropertyKey[]): unknown {
  let value = params;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** Shows a stranger's value: never long, never nested (deep nesting would overflow a recursive printer). */
function shorten(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(typeof value === "string" ? value.slice(0, MAX_SHOWN_CHARS) : value);
  return typeof value === "string" && value.length > MAX_SHOWN_CHARS
    ? `${text}… (${value.length} characters)`
    : text;
}
