import type { TokenShape } from "./secret-shapes.ts";
import {
  byteSet,
  MAX_UNDECIDED_BYTES,
  type MatchContext,
  type SecretSpan,
  type ShapeMatcher,
  type ShapeName,
  WORD,
} from "./shape-matcher.ts";

const MAX_GAP_BYTES = 16;

interface ByteSets {
  readonly body: Uint8Array;
  readonly gap: Uint8Array;
}

const knownSets = new Map<number, ByteSets>();

function setsOf(number: number, shape: TokenShape): ByteSets {
  const known = knownSets.get(number) ?? { body: byteSet(shape.body), gap: byteSet(shape.gap ?? "") };
  knownSets.set(number, known);
  return known;
}

/** One that is begun again while it reads stays with the earlier beginning: the run is the same, and ends at the same place. */
export function createTokenMatcher(shape: TokenShape & ShapeName, context: MatchContext): ShapeMatcher {
  const { body, gap } = setsOf(shape.number, shape);
  const { minBytes, accept, maxBytes } = shape;
  const isSure = accept === undefined && maxBytes === undefined;
  let isActive = false;
  let endedAt = 0;
  let bodyAt = 0;
  let isInBody = false;
  let gapLeft = 0;
  let span: SecretSpan | null = null;

  /** The run is the whole body up to `at`. */
  const decide = (at: number): SecretSpan | null => {
    if (at - bodyAt < minBytes || (maxBytes !== undefined && at - bodyAt > maxBytes)) return null;
    const from = accept === undefined ? 0 : accept(context.text(bodyAt, at));
    return from < 0 ? null : context.found(bodyAt + from, at, shape);
  };
  const stop = (at: number): void => {
    isActive = false;
    endedAt = at;
  };
  return {
    get isActive() {
      return isActive;
    },
    get holdAt() {
      return span === null ? bodyAt : Number.POSITIVE_INFINITY;
    },
    get endedAt() {
      return endedAt;
    },
    begin(anchorAt, at) {
      if (shape.isWeak && joinsWord(context, anchorAt)) return;
      isActive = true;
      bodyAt = at;
      isInBody = false;
      gapLeft = shape.gap === undefined ? 0 : MAX_GAP_BYTES;
      span = null;
    },
    read(chunk, from, base) {
      let i = from;
      if (!isInBody) {
        for (; i < chunk.length && gapLeft > 0 && gap[chunk[i] as number] === 1; i += 1) gapLeft -= 1;
        bodyAt = base + i;
        if (i === chunk.length) return;
        isInBody = true;
      }
      const limit =
        span === null ? Math.min(chunk.length, bodyAt + MAX_UNDECIDED_BYTES - base) : chunk.length;
      while (i < limit && body[chunk[i] as number] === 1) i += 1;
      if (i === limit && i < chunk.length && span === null) {
        span = decide(base + i);
        if (span === null) {
          stop(base + i);
          return;
        }
        while (i < chunk.length && body[chunk[i] as number] === 1) i += 1;
      }
      const at = base + i;
      if (span === null && isSure && at - bodyAt >= minBytes) span = context.found(bodyAt, at, shape);
      if (span !== null) span.end = at;
      if (i === chunk.length) return;
      if (span === null && (maxBytes === undefined || WORD[chunk[i] as number] === 0)) decide(at);
      stop(at);
    },
    finish(at) {
      if (span === null) decide(at);
      stop(at);
    },
  };
}

/** Whether a word of the text before goes on into the anchor; escapes of terminals, JSON and URLs end no word. */
function joinsWord(context: MatchContext, anchorAt: number): boolean {
  return (
    WORD[context.byte(anchorAt - 1)] === 1 &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals' colour codes begin with one.
    !/(?:\x1b\[[0-9;]{0,12}m|\\[nrt]|%[0-9A-Fa-f]{2}|\\u00[0-9a-f]{2})$/.test(
      context.text(anchorAt - 16, anchorAt),
    )
  );
}
