/**
 * Finds secrets in a stream of bytes, in whatever chunks they come (rows A9, P14): the configured ones by value, others by shape.
 *
 * Theory of operation. The forms of the configured secrets and the anchors of all shapes are one automaton, which reads every byte
 * once. Where an anchor ends, the shape's matcher reads on beside it until it knows. What is found depends on the bytes alone,
 * never on where a chunk ended. Bytes are held back only while they could still be a secret: the longest beginning of a
 * configured one, or the run behind an anchor, at most `MAX_UNDECIDED_BYTES` of it. Anchors are public and are not held.
 */
import { latin1Text, utf8Bytes } from "../util/text-bytes.ts";
import { ANCHORED_SHAPES, createMatcher, MATCHERS } from "./anchored-shapes.ts";
import { type ByteAutomaton, compileAutomaton } from "./byte-automaton.ts";
import { MIN_SECRET_CHARS, secretForms } from "./secret-forms.ts";
import { CONFIGURED_RULE } from "./secret-shapes.ts";
import { LOOK_BACK_BYTES, type MatchContext, type SecretSpan, type ShapeMatcher } from "./shape-matcher.ts";

export type { SecretSpan } from "./shape-matcher.ts";

/** Secrets compiled for any number of streams. */
export interface SecretPatterns {
  readonly automaton: ByteAutomaton;
  /** What could not be protected, for people; never holds a secret. */
  readonly warnings: readonly string[];
}

/** Bytes that have become certain, and what of them is secret. Offsets count from the stream's beginning. */
export interface Certain {
  /** From `from` to `until`. Shares memory with later windows only for reading. */
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly until: number;
  /** By start, configured ones first. They may overlap, and end behind `until`. */
  readonly spans: readonly SecretSpan[];
}

export interface SecretFinder {
  push(chunk: Uint8Array): Certain;
  /** The rest. A configured secret of which only a part came is not one. */
  end(): Certain;
}

/** Compiled lists, as long as the list itself is kept: everything of a run has the same one, and a table takes time and memory. */
const compiled = new WeakMap<readonly string[], SecretPatterns>();

/**
 * Compiles configured secrets together with the shapes, once a list: it MUST NOT change afterwards. Secrets that are too short to
 * look for are told in `warnings`.
 */
export function compileSecrets(secrets: readonly string[]): SecretPatterns {
  const known = compiled.get(secrets);
  if (known !== undefined) return known;
  const patterns = compile(secrets);
  compiled.set(secrets, patterns);
  return patterns;
}

function compile(secrets: readonly string[]): SecretPatterns {
  const usable = secrets.filter((secret) => secret.trim().length >= MIN_SECRET_CHARS);
  const short = secrets.length - usable.length;
  return {
    automaton: compileAutomaton(
      usable.flatMap(secretForms),
      ANCHORED_SHAPES.map(({ anchor }) => utf8Bytes(anchor)),
    ),
    warnings:
      short === 0
        ? []
        : [
            `${short} of ${secrets.length} secrets are shorter than ${MIN_SECRET_CHARS} characters and are not redacted: use longer ones`,
          ],
  };
}

/** Opens a finder for one stream. `onFound` is told once of every secret, overlapping forms of one as one. */
export function createSecretFinder(
  { automaton }: SecretPatterns,
  onFound?: (span: SecretSpan) => void,
): SecretFinder {
  const { classOf, classes, next, depth, matched, anchors } = automaton;
  /** Of the automaton. */
  let row = 0;
  /** What is not given out yet, with a little of what was: matchers look back. */
  let window: Uint8Array = new Uint8Array(0);
  let windowAt = 0;
  let certainAt = 0;
  let endAt = 0;
  /** Found by value, in order, neither overlapping nor touching. */
  let values: SecretSpan[] = [];
  let shapes: SecretSpan[] = [];
  const matchers: Array<ShapeMatcher | undefined> = new Array(MATCHERS).fill(undefined);
  let active: ShapeMatcher[] = [];
  const context: MatchContext = {
    found(start, end, { rule, number }) {
      const span: SecretSpan = { start, end, rule, number };
      shapes.push(span);
      onFound?.(span);
      return span;
    },
    byte: (at) => window[at - windowAt] ?? 0,
    text: (start, end) =>
      latin1Text(window.subarray(Math.max(0, start - windowAt), Math.max(0, end - windowAt))),
  };

  const findValue = (start: number, end: number): void => {
    let from = start;
    let isNew = true;
    for (let last = values.at(-1); last !== undefined && last.end >= from; last = values.at(-1)) {
      from = Math.min(from, last.start);
      isNew = false;
      values.pop();
    }
    const span: SecretSpan = { start: from, end, rule: CONFIGURED_RULE, number: -1 };
    values.push(span);
    if (isNew) onFound?.(span);
  };
  /** Anchors ended before `chunk[i]`: what they begin is read at once, as far as the chunk goes. */
  const meet = (anchorsHere: readonly number[], chunk: Uint8Array, i: number): void => {
    for (const index of anchorsHere) {
      const shape = ANCHORED_SHAPES[index];
      if (shape === undefined) continue;
      const matcher = matchers[shape.matcher] ?? createMatcher(shape.matcher, context);
      matchers[shape.matcher] = matcher;
      const at = endAt + i;
      if (matcher.isActive || at <= matcher.endedAt) continue;
      matcher.begin(at - shape.anchor.length, at);
      if (!matcher.isActive) continue;
      matcher.read(chunk, i, endAt);
      if (matcher.isActive) active.push(matcher);
    }
  };
  /** Something ends in this state, before `chunk[i]`. */
  const look = (state: number, chunk: Uint8Array, i: number): void => {
    const length = matched[state] as number;
    if (length > 0) findValue(endAt + i - length, endAt + i);
    const anchorsHere = anchors.get(state);
    if (anchorsHere !== undefined) meet(anchorsHere, chunk, i);
  };

  /** Gives out everything up to `until` that was not given out yet. */
  const release = (until: number): Certain => {
    const from = certainAt;
    const bytes = window.subarray(from - windowAt, until - windowAt);
    const all = shapes.length === 0 ? values : [...values, ...shapes].sort(byPlace);
    certainAt = until;
    // One that ends right here stays: a match that touches it is the same secret to whoever reads.
    if (values.length > 0) values = values.filter((span) => span.end >= until);
    if (shapes.length > 0) shapes = shapes.filter((span) => span.end >= until);
    return { bytes, from, until, spans: all };
  };

  return {
    push(chunk) {
      const keepAt = Math.max(windowAt, certainAt - LOOK_BACK_BYTES);
      window = joined(window.subarray(keepAt - windowAt), chunk);
      windowAt = keepAt;
      for (const matcher of active) matcher.read(chunk, 0, endAt);
      active = active.filter((matcher) => matcher.isActive);
      // Locals and nothing else: this loop sees every byte of every attempt.
      let current = row;
      for (let i = 0; i < chunk.length; i += 1) {
        current = next[current + (classOf[chunk[i] as number] as number)] as number;
        if (current < 0) {
          current = -current;
          look(current / classes, chunk, i + 1);
        }
      }
      row = current;
      endAt += chunk.length;
      const undecided = endAt - (depth[row / classes] ?? 0);
      // Bytes of a secret are decided, also when a longer one may go on from them: their mark can go out now.
      let until = values.find((span) => span.start <= undecided && undecided < span.end)?.end ?? undecided;
      for (const matcher of active) until = Math.min(until, matcher.holdAt);
      return release(Math.max(until, certainAt));
    },
    end() {
      for (const matcher of active) matcher.finish(endAt);
      active = [];
      row = 0;
      return release(endAt);
    },
  };
}

/** Where two begin at one place the name must not depend on which was known first. */
function byPlace(a: SecretSpan, b: SecretSpan): number {
  return a.start - b.start || a.number - b.number;
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
