/**
 * What goes on behind an anchor: small machines that read on from it and say where a secret lies. Each reads a byte once and looks
 * at what it has read at most once more, within `MAX_UNDECIDED_BYTES`: time is linear whatever comes.
 */
import {
  isPlaceholderPassword,
  isReferenceScheme,
  PRIVATE_KEY_RULE,
  TOKEN_SHAPES,
  type TokenShape,
  URL_PASSWORD_RULE,
} from "./secret-shapes.ts";

/** A stretch of the stream that is secret. `end` grows while more of it comes. */
export interface SecretSpan {
  readonly start: number;
  end: number;
  readonly rule: string;
  readonly number: number;
}

/** A rule by name and number; the number decides between two that find the same. */
export interface ShapeName {
  readonly rule: string;
  readonly number: number;
}

/** What a machine may ask of the stream it reads. Offsets count from the stream's beginning. */
export interface MatchContext {
  found(start: number, end: number, shape: ShapeName): SecretSpan;
  /** Bytes from `start` to `end`, one character each: from the hold on, or a few before it (`LOOK_BACK_BYTES`). */
  text(start: number, end: number): string;
  /** The byte at an offset within the same bounds; 0 before the stream's beginning. */
  byte(at: number): number;
}

export interface ShapeMatcher {
  readonly isActive: boolean;
  /** From here on nothing is certain; Infinity where all is. */
  readonly holdAt: number;
  /** Where it stopped last. An anchor that ends before is part of what it has read already. */
  readonly endedAt: number;
  /** An anchor ended before `at`; it began at `anchorAt`. */
  begin(anchorAt: number, at: number): void;
  /** Reads on from `chunk[from]`, as far as the chunk goes or until it stops. `chunk[0]` is at `base`. */
  read(chunk: Uint8Array, from: number, base: number): void;
  /** The stream ended at `at`. */
  finish(at: number): void;
}

export interface AnchoredShape {
  readonly anchor: string;
  /** Matchers are made one a stream; shapes with the same number share one. */
  readonly matcher: number;
}

/** What a matcher may hold back before it has to decide. */
export const MAX_UNDECIDED_BYTES = 8192;
/** How far before the hold a matcher may look. */
export const LOOK_BACK_BYTES = 64;
const MAX_GAP_BYTES = 16;

/** Makes the matcher of that number for one stream. */
export function createMatcher(number: number, context: MatchContext): ShapeMatcher {
  const shape = TOKEN_SHAPES[number];
  if (shape !== undefined) return createTokenMatcher({ number, ...shape }, setsOf(number, shape), context);
  return number === URL_MATCHER ? createUrlMatcher(context) : createKeyMatcher(context);
}

const URL_MATCHER = TOKEN_SHAPES.length;
const KEY_MATCHER = TOKEN_SHAPES.length + 1;

export const ANCHORED_SHAPES: readonly AnchoredShape[] = [
  ...TOKEN_SHAPES.flatMap(({ anchors }, matcher) => anchors.map((anchor) => ({ anchor, matcher }))),
  { anchor: "://", matcher: URL_MATCHER },
  { anchor: "-----BEGIN ", matcher: KEY_MATCHER },
];
export const MATCHERS = TOKEN_SHAPES.length + 2;
const KEY_NAME: ShapeName = { rule: PRIVATE_KEY_RULE, number: KEY_MATCHER };

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

/** 1 for every byte that the character class holds. */
function byteSet(characters: string): Uint8Array {
  const set = new Uint8Array(256);
  if (characters === "") return set;
  const pattern = new RegExp(`[${characters}]`);
  for (let byte = 0; byte < 128; byte += 1) if (pattern.test(String.fromCharCode(byte))) set[byte] = 1;
  return set;
}

const WORD = byteSet("A-Za-z0-9_");
const BASE64 = byteSet("A-Za-z0-9+/=");
const HEADER = byteSet("A-Z0-9 ");
const USER_INFO = byteSet("!$%&()*+,.0-9;=A-Z\\[\\]^_a-z{|}~-");
const UPPER = byteSet("A-Z");
const LOWER = byteSet("a-z");
const DIGIT = byteSet("0-9");

/** One that is begun again while it reads stays with the earlier beginning: the run is the same, and ends at the same place. */
function createTokenMatcher(
  shape: TokenShape & ShapeName,
  { body, gap }: ByteSets,
  context: MatchContext,
): ShapeMatcher {
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

/** The parts of a matcher that reads byte by byte. */
interface ByteMachine {
  isActive: boolean;
  holdAt: number;
  begin(anchorAt: number, at: number): void;
  step(byte: number, at: number): void;
  finish(at: number): void;
}

function readBytewise(machine: ByteMachine): ShapeMatcher {
  let endedAt = 0;
  return {
    get isActive() {
      return machine.isActive;
    },
    get holdAt() {
      return machine.holdAt;
    },
    get endedAt() {
      return endedAt;
    },
    begin: machine.begin,
    read(chunk, from, base) {
      for (let i = from; i < chunk.length && machine.isActive; i += 1) {
        endedAt = base + i;
        machine.step(chunk[i] as number, endedAt);
      }
    },
    finish: machine.finish,
  };
}

/** `scheme://user:password@host`: the password. */
function createUrlMatcher(context: MatchContext): ShapeMatcher {
  // The user's name is not held: it has to be within the look back.
  const MAX_USER_BYTES = LOOK_BACK_BYTES - 8;
  const MAX_PASSWORD_BYTES = 256;
  let userAt = 0;
  let passwordAt = -1;
  const machine: ByteMachine = {
    isActive: false,
    holdAt: Number.POSITIVE_INFINITY,
    begin(anchorAt, at) {
      const before = context.text(anchorAt - 20, anchorAt);
      const scheme = /[A-Za-z0-9+.-]+$/.exec(before)?.[0] ?? "";
      machine.isActive = scheme !== "" && !isReferenceScheme(scheme);
      machine.holdAt = Number.POSITIVE_INFINITY;
      userAt = at;
      passwordAt = -1;
    },
    step(byte, at) {
      if (passwordAt === -1) {
        if (byte === 0x3a) {
          passwordAt = at + 1;
          machine.holdAt = passwordAt;
        } else machine.isActive = USER_INFO[byte] === 1 && at - userAt < MAX_USER_BYTES;
      } else if (byte === 0x40) {
        machine.isActive = false;
        const user = context.text(userAt, passwordAt - 1);
        if (at > passwordAt && !isPlaceholderPassword(user, context.text(passwordAt, at)))
          context.found(passwordAt, at, { rule: URL_PASSWORD_RULE, number: URL_MATCHER });
      } else {
        machine.isActive = (USER_INFO[byte] === 1 || byte === 0x3a) && at - passwordAt < MAX_PASSWORD_BYTES;
      }
    },
    finish() {
      machine.isActive = false;
    },
  };
  return readBytewise(machine);
}

/**
 * `-----BEGIN … PRIVATE KEY-----` to the next `-----`, over line ends of any kind and prefixes of logs. Without a line of key
 * material soon after the header it is only talk about keys; where the end is missing, the last such line is the end.
 */
function createKeyMatcher(context: MatchContext): ShapeMatcher {
  const MAX_HEADER_BYTES = 48;
  const MIN_LINE_BYTES = 40;
  const MAX_PAUSE_BYTES = 512;
  let headerAt = 0;
  let bodyAt = -1;
  let dashes = 0;
  let line = 0;
  /** Kinds of characters in the line: 1 upper, 2 lower, 4 digit. */
  let kinds = 0;
  let keyEnd = -1;

  const close = (end: number): void => {
    machine.isActive = false;
    if (keyEnd !== -1) context.found(bodyAt, end, KEY_NAME);
  };
  const readHeader = (byte: number, at: number): void => {
    if (byte === 0x2d) {
      dashes += 1;
      if (dashes < 5) return;
      const isKey = /PRIVATE KEY(?: BLOCK)?-----$/.test(context.text(Math.max(headerAt, at - 40), at + 1));
      machine.isActive = isKey;
      bodyAt = at + 1;
      machine.holdAt = bodyAt;
      dashes = 0;
    } else machine.isActive = dashes === 0 && HEADER[byte] === 1 && at - headerAt < MAX_HEADER_BYTES;
  };
  const machine: ByteMachine = {
    isActive: false,
    holdAt: Number.POSITIVE_INFINITY,
    begin(_anchorAt, at) {
      machine.isActive = true;
      machine.holdAt = Number.POSITIVE_INFINITY;
      headerAt = at;
      bodyAt = -1;
      dashes = 0;
      line = 0;
      kinds = 0;
      keyEnd = -1;
    },
    step(byte, at) {
      if (bodyAt === -1) {
        readHeader(byte, at);
        return;
      }
      dashes = byte === 0x2d ? dashes + 1 : 0;
      if (dashes === 5) {
        close(at - 4);
        return;
      }
      if (BASE64[byte] === 1) {
        line += 1;
        kinds |= (UPPER[byte] ?? 0) | ((LOWER[byte] ?? 0) << 1) | ((DIGIT[byte] ?? 0) << 2);
        if (line >= MIN_LINE_BYTES && kinds === 7) keyEnd = at + 1;
      } else {
        line = 0;
        kinds = 0;
      }
      if (at - Math.max(bodyAt, keyEnd) > MAX_PAUSE_BYTES) close(keyEnd);
      else if (keyEnd !== -1 && at - bodyAt > MAX_UNDECIDED_BYTES) {
        // Longer than any hold may be: what is certain goes, and the key goes on behind it.
        context.found(bodyAt, keyEnd, KEY_NAME);
        bodyAt = keyEnd;
        machine.holdAt = bodyAt;
      }
    },
    finish() {
      if (bodyAt !== -1) close(keyEnd);
      machine.isActive = false;
    },
  };
  return readBytewise(machine);
}
