/** Every anchor with the matcher that goes on behind it. */
import { createKeyMatcher } from "./match-private-key.ts";
import { createTokenMatcher } from "./match-token.ts";
import { createUrlMatcher } from "./match-url-password.ts";
import { TOKEN_SHAPES } from "./secret-shapes.ts";
import type { MatchContext, ShapeMatcher } from "./shape-matcher.ts";

export interface AnchoredShape {
  readonly anchor: string;
  /** Matchers are made one a stream; shapes with the same number share one. */
  readonly matcher: number;
}

const URL_MATCHER = TOKEN_SHAPES.length;
const KEY_MATCHER = TOKEN_SHAPES.length + 1;

export const ANCHORED_SHAPES: readonly AnchoredShape[] = [
  ...TOKEN_SHAPES.flatMap(({ anchors }, matcher) => anchors.map((anchor) => ({ anchor, matcher }))),
  { anchor: "://", matcher: URL_MATCHER },
  { anchor: "-----BEGIN ", matcher: KEY_MATCHER },
];
export const MATCHERS = TOKEN_SHAPES.length + 2;

/** Makes the matcher of that number for one stream. */
export function createMatcher(number: number, context: MatchContext): ShapeMatcher {
  const shape = TOKEN_SHAPES[number];
  if (shape !== undefined) return createTokenMatcher({ number, ...shape }, context);
  return number === URL_MATCHER ? createUrlMatcher(number, context) : createKeyMatcher(number, context);
}
