import { PRIVATE_KEY_RULE } from "./secret-shapes.ts";
import {
  type ByteMachine,
  byteSet,
  MAX_UNDECIDED_BYTES,
  type MatchContext,
  readBytewise,
  type ShapeMatcher,
  type ShapeName,
} from "./shape-matcher.ts";

const BASE64 = byteSet("A-Za-z0-9+/=");
const HEADER = byteSet("A-Z0-9 ");
const UPPER = byteSet("A-Z");
const LOWER = byteSet("a-z");
const DIGIT = byteSet("0-9");

/**
 * `-----BEGIN … PRIVATE KEY-----` to the next `-----`, over line ends of any kind and prefixes of logs. Without a line of key
 * material soon after the header it is only talk about keys; where the end is missing, the last such line is the end.
 */
export function createKeyMatcher(number: number, context: MatchContext): ShapeMatcher {
  const name: ShapeName = { rule: PRIVATE_KEY_RULE, number };
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
    if (keyEnd !== -1) context.found(bodyAt, end, name);
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
        context.found(bodyAt, keyEnd, name);
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
