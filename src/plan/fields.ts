import { z } from "zod";
import { BYTES_PATTERN, formatBytes, parseBytes } from "../util/bytes.ts";
import { DURATION_PATTERN, formatDuration, parseDurationMs } from "../util/duration.ts";

/**
 * The building blocks of the schemas. Each carries a description (for editors) and a kind (for messages): whatever zod has against a
 * value, the person reads `<value> is not <noun>; use <allowed>`.
 */
export interface FieldKind {
  readonly noun: string;
  readonly allowed: string;
}

const kinds = z.registry<FieldKind>();

/** What a schema wants, or undefined where none of its authors said. */
export function kindOf(schema: z.core.$ZodType): FieldKind | undefined {
  return kinds.get(schema);
}

/** Names what a schema wants and describes it. */
export function field<T extends z.ZodType>(schema: T, kind: FieldKind, description: string): T {
  const described = schema.describe(description);
  kinds.add(described, kind);
  return described;
}

/** A string limited by what execve takes as one argument (MAX_ARG_STRLEN, 128 KiB with the final NUL). */
export const MAX_ARGUMENT_BYTES = 128 * 1024 - 1;

/** No NUL: neither argv, env nor a path can hold one. */
const NO_NUL = /^[^\0]*$/;

export function text(description: string, options: { noun?: string; max?: number; empty?: boolean } = {}) {
  const max = options.max ?? 65_536;
  return field(
    z
      .string()
      .min(options.empty === true ? 0 : 1)
      .max(max)
      .regex(NO_NUL),
    {
      noun: options.noun ?? "text",
      allowed: `${options.empty === true ? "0" : "1"} to ${max.toLocaleString("en")} characters`,
    },
    description,
  );
}

export function wholeNumber(description: string, min: number, max: number) {
  const range = `${min.toLocaleString("en")} to ${max.toLocaleString("en")}`;
  return field(
    z.number().int().min(min).max(max),
    { noun: "a fitting number", allowed: `a whole number from ${range}` },
    description,
  );
}

export function decimal(description: string, min: number, max: number) {
  return field(
    z.number().min(min).max(max),
    { noun: "a fitting number", allowed: `a number from ${min} to ${max}` },
    description,
  );
}

export function oneOf<const T extends readonly [string, ...string[]]>(
  description: string,
  noun: string,
  values: T,
) {
  return field(z.enum(values), { noun, allowed: orList(values) }, description);
}

/** A size in bytes. */
export function size(description: string, min: number, max = Number.MAX_SAFE_INTEGER) {
  return field(
    z.union([z.string().regex(BYTES_PATTERN), z.number().min(0)]).transform((value, context) => {
      const bytes = parseBytes(value);
      if (bytes !== null && bytes >= min && bytes <= max) return bytes;
      context.addIssue({
        code: "custom",
        message:
          bytes === null || bytes > max
            ? `is more than ${formatBytes(max)}`
            : `is less than ${formatBytes(min)}`,
      });
      return z.NEVER;
    }),
    { noun: "a size", allowed: "e.g. 512m, 2GiB" },
    description,
  );
}

/** A size, or `none` for no cap. */
export function sizeOrNone(description: string, min: number) {
  return field(
    z.union([z.literal("none").transform(() => null), size(description, min)]),
    { noun: "a size", allowed: "e.g. 512m, 2GiB, or none" },
    description,
  );
}

/** A length of time, out in milliseconds. */
export function duration(description: string, minMs: number, maxMs: number) {
  return field(
    z.union([z.string().regex(DURATION_PATTERN), z.number().min(0)]).transform((value, context) => {
      const ms = parseDurationMs(value);
      if (ms !== null && ms >= minMs && ms <= maxMs) return ms;
      context.addIssue({
        code: "custom",
        message:
          ms === null || ms > maxMs
            ? `is more than ${formatDuration(maxMs)}`
            : `is less than ${formatDuration(minMs)}`,
      });
      return z.NEVER;
    }),
    { noun: "a time", allowed: "e.g. 90s, 30m, 1h30m, or a number of seconds" },
    description,
  );
}

/** A list, or one item alone in its place. */
export function listOf<T extends z.ZodType>(description: string, noun: string, item: T, max = 10_000) {
  const kind = { noun, allowed: `a list of at most ${max.toLocaleString("en")}` };
  const list = field(z.array(item).max(max), kind, description);
  return field(z.union([list, item.transform((one) => [one])]), kind, description);
}

/**
 * A pattern in gitignore syntax. `..` and line ends are refused: such a pattern matches nothing under the repository, or is two.
 */
export function pattern(description: string) {
  return field(
    z
      .string()
      .min(1)
      .max(4096)
      .regex(/^(?!(?:.*\/)?\.\.(?:\/|$))[^\0\n\r]+$/),
    { noun: "a pattern", allowed: "gitignore syntax relative to the repository root, without .." },
    description,
  );
}

/** A path inside the repository. What it names is looked up in the snapshot, never on the host. */
export const repositoryPath = field(
  z
    .string()
    .min(1)
    .max(4096)
    .regex(/^(?!\/)(?!(?:.*\/)?\.\.(?:\/|$))[^\0]+$/),
  { noun: "a path in the repository", allowed: "a path relative to its root, without .." },
  "Path relative to the repository root.",
);

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The name of an environment variable. Those that begin with BULKHEAD_ are set by bulkhead itself. */
export const envName = field(
  z
    .string()
    .max(256)
    .regex(ENV_NAME)
    .regex(/^(?!BULKHEAD_)/),
  { noun: "a variable name", allowed: "A-Z a-z 0-9 _, not starting with a digit or BULKHEAD_" },
  "Name of an environment variable.",
);

const envValue = field(
  z
    .union([z.string().max(MAX_ARGUMENT_BYTES).regex(NO_NUL), z.number(), z.boolean()])
    .transform((value) => String(value)),
  { noun: "the value of a variable", allowed: 'text, a number, true or false ("" for empty)' },
  "Value; numbers and true/false are passed as they are written.",
);

export function environment(description: string) {
  return field(
    z.record(envName, envValue),
    { noun: "a map of variables", allowed: "NAME: value" },
    description,
  );
}

/** `a, b or c`. */
export function orList(words: readonly string[]): string {
  return words.length < 2
    ? words.join("")
    : `${words.slice(0, -1).join(", ")} or ${words[words.length - 1] ?? ""}`;
}
