/**
 * Keeps secrets out of output as it streams by (rows A9, P14).
 *
 * Theory of operation. The forms of all secrets are one automaton; it reads every byte once, in whatever chunks they come. A byte
 * is held back only while it could still be the beginning of a secret, so a prompt without a line end shows at once, and at most
 * the longest form is ever held. Every byte that belongs to any match is dropped, overlapping and touching matches as one, and a
 * mark stands in their place; all other bytes pass unchanged.
 *
 * Other kinds of rule (shapes of tokens) fit in as further sources of the spans that `push` cuts out.
 */
import { type ByteAutomaton, compileAutomaton } from "./byte-automaton.ts";
import { MIN_SECRET_CHARS, secretForms } from "./secret-forms.ts";

export const REDACTION_MARK = "[redacted]";
const MARK = Buffer.from(REDACTION_MARK);
const NOTHING = Buffer.alloc(0);

/** Redacts one stream. Two streams that are interleaved (stdout, stderr) need one each. */
export interface Redactor {
  /** What is certain to be free of secrets so far; may be empty. The result may share memory with `chunk`. */
  push(chunk: string | Uint8Array): Buffer;
  /** The rest. A secret of which only a part came is not one, and passes. */
  end(): Buffer;
  /** What could not be protected, for people; never holds a secret. */
  readonly warnings: readonly string[];
}

/** Opens a redactor. Redactors for the same secrets share one compiled automaton. */
export function createRedactor(secrets: readonly string[]): Redactor {
  const { automaton, warnings } = compile(secrets);
  if (automaton === null) {
    return { push: (chunk) => toBuffer(chunk), end: () => NOTHING, warnings };
  }
  const { classOf, classes, next, depth, matched } = automaton;
  let state = 0;
  /** Bytes read but not given out: the longest suffix that a secret may begin with; `heldAt` is its place in the stream. */
  let held = NOTHING;
  let heldAt = 0;
  /** Found and not wholly dropped yet, in order, neither overlapping nor touching. */
  let spans: Span[] = [];

  const find = (start: number, end: number): void => {
    let merged: Span = { start, end, marked: false };
    for (let last = spans.at(-1); last !== undefined && last.end >= merged.start; last = spans.at(-1)) {
      merged = { start: Math.min(last.start, merged.start), end, marked: last.marked };
      spans.pop();
    }
    spans.push(merged);
  };

  /** Gives out `bytes`, which begin at `base`, up to `until`, without what lies in a span. */
  const emit = (bytes: Buffer, base: number, until: number): Buffer => {
    const out: Buffer[] = [];
    let from = base;
    for (const span of spans) {
      if (span.start >= until) break;
      if (span.start > from) out.push(bytes.subarray(from - base, span.start - base));
      if (!span.marked) out.push(MARK);
      span.marked = true;
      from = Math.max(from, Math.min(span.end, until));
    }
    if (until > from) out.push(bytes.subarray(from - base, until - base));
    // One that ends right here stays: a match that touches it must not get a second mark.
    spans = spans.filter((span) => span.end >= until);
    return out.length === 1 && out[0] !== undefined ? out[0] : Buffer.concat(out);
  };

  return {
    push(chunk) {
      const fresh = toBuffer(chunk);
      const bytes = held.length === 0 ? fresh : Buffer.concat([held, fresh]);
      const base = heldAt;
      // A local: this loop sees every byte of every attempt.
      let current = state;
      for (let i = held.length; i < bytes.length; i += 1) {
        current = next[current * classes + (classOf[bytes[i] as number] as number)] as number;
        const length = matched[current] as number;
        if (length > 0) find(base + i + 1 - length, base + i + 1);
      }
      state = current;
      const undecided = base + bytes.length - (depth[state] ?? 0);
      // Bytes of a secret are decided, also when a longer one may go on from them: their mark can go out now.
      heldAt = spans.find((span) => span.start <= undecided && undecided < span.end)?.end ?? undecided;
      held = Buffer.from(bytes.subarray(heldAt - base));
      return emit(bytes, base, heldAt);
    },
    end() {
      const rest = emit(held, heldAt, heldAt + held.length);
      heldAt += held.length;
      held = NOTHING;
      state = 0;
      return rest;
    },
    warnings,
  };
}

interface Span {
  readonly start: number;
  readonly end: number;
  /** Its mark was given out. */
  marked: boolean;
}

interface Compiled {
  readonly automaton: ByteAutomaton | null;
  readonly warnings: readonly string[];
}

/** The last compilation: attempts of one run have the same secrets, and a table can take megabytes. */
let latest: { readonly secrets: readonly string[]; readonly compiled: Compiled } | null = null;

function compile(secrets: readonly string[]): Compiled {
  const same =
    latest !== null &&
    latest.secrets.length === secrets.length &&
    latest.secrets.every((secret, i) => secret === secrets[i]);
  if (latest !== null && same) return latest.compiled;
  const usable = secrets.filter((secret) => secret.trim().length >= MIN_SECRET_CHARS);
  const short = secrets.length - usable.length;
  const compiled: Compiled = {
    automaton: usable.length === 0 ? null : compileAutomaton(usable.flatMap(secretForms)),
    warnings:
      short === 0
        ? []
        : [
            `${short} of ${secrets.length} secrets are shorter than ${MIN_SECRET_CHARS} characters and are not redacted: use longer ones`,
          ],
  };
  latest = { secrets: [...secrets], compiled };
  return compiled;
}

function toBuffer(chunk: string | Uint8Array): Buffer {
  if (typeof chunk === "string") return Buffer.from(chunk, "utf8");
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}
