/**
 * Keeps secrets out of output as it streams by (rows A9, P14): configured ones by value, well-known tokens by shape.
 *
 * Every byte that belongs to a secret is dropped, overlapping and touching ones as one, and a mark stands in their place; all other
 * bytes pass unchanged, as soon as they are certain (src/policy/secret-finder.ts says when). The public beginning of a token
 * (`ghp_`) stays.
 */
import { type Certain, compileSecrets, createSecretFinder } from "../policy/secret-finder.ts";
import { CONFIGURED_RULE } from "../policy/secret-shapes.ts";

export const REDACTION_MARK = "[redacted]";
const NOTHING = Buffer.alloc(0);

/** Redacts one stream. Two streams that are interleaved (stdout, stderr) need one each. */
export interface Redactor {
  /** What is certain to be free of secrets so far; may be empty. */
  push(chunk: string | Uint8Array): Buffer;
  /** The rest. A configured secret of which only a part came is not one, and passes. */
  end(): Buffer;
  /** What could not be protected, for people; never holds a secret. */
  readonly warnings: readonly string[];
}

/** What was redacted, and which rules it fell under. */
export interface Redacted {
  readonly content: Buffer;
  readonly rules: readonly string[];
}

/** Opens a redactor. Redactors for the same secrets share one compiled automaton. */
export function createRedactor(secrets: readonly string[], onFound?: (rule: string) => void): Redactor {
  const patterns = compileSecrets(secrets);
  const finder = createSecretFinder(patterns, (span) => onFound?.(span.rule));
  /** Up to here everything stands behind a mark that was given out. */
  let markedUntil = -1;

  const emit = ({ bytes, from, until, spans }: Certain): Buffer => {
    const pieces: Uint8Array[] = [];
    let at = from;
    for (const span of spans) {
      if (span.start >= until) break;
      if (span.end <= span.start || span.end < markedUntil) continue;
      if (span.start > markedUntil) {
        if (span.start > at) pieces.push(bytes.subarray(at - from, span.start - from));
        pieces.push(markOf(span.rule));
      }
      markedUntil = Math.max(markedUntil, span.end);
      at = Math.max(at, Math.min(markedUntil, until));
    }
    if (until > at) pieces.push(bytes.subarray(at - from));
    const [only] = pieces;
    if (only === undefined) return NOTHING;
    return pieces.length === 1 ? asBuffer(only) : Buffer.concat(pieces);
  };

  return {
    push: (chunk) => emit(finder.push(typeof chunk === "string" ? Buffer.from(chunk, "utf8") : chunk)),
    end: () => emit(finder.end()),
    warnings: patterns.warnings,
  };
}

/** Redacts something whole. What holds no secret comes back as it is. */
export function redactBytes(secrets: readonly string[], content: Buffer): Redacted {
  const rules = new Set<string>();
  const redactor = createRedactor(secrets, (rule) => rules.add(rule));
  const parts = [redactor.push(content), redactor.end()];
  return { content: rules.size === 0 ? content : Buffer.concat(parts), rules: [...rules] };
}

/** Redacts a text. Where much of it comes, give the same list of secrets again: it is compiled once. */
export function redactText(secrets: readonly string[], text: string): string {
  const { content, rules } = redactBytes(secrets, Buffer.from(text, "utf8"));
  return rules.length === 0 ? text : content.toString("utf8");
}

/** Redacts every text in a plain JSON value; keys stay. What holds no secret comes back as it is, and costs one look. */
export function redactValue<T>(secrets: readonly string[], value: T): T {
  const whole = Buffer.from(JSON.stringify(value), "utf8");
  return redactBytes(secrets, whole).rules.length === 0 ? value : (redactDeep(secrets, value) as T);
}

function redactDeep(secrets: readonly string[], value: unknown): unknown {
  if (typeof value === "string") return redactText(secrets, value);
  if (Array.isArray(value)) return value.map((item) => redactDeep(secrets, item));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redactDeep(secrets, item)]));
}

const marks = new Map<string, Buffer>([[CONFIGURED_RULE, Buffer.from(REDACTION_MARK)]]);

function markOf(rule: string): Buffer {
  const mark = marks.get(rule) ?? Buffer.from(`[redacted: ${rule}]`);
  marks.set(rule, mark);
  return mark;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
