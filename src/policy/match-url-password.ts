import { isPlaceholderPassword, isReferenceScheme, URL_PASSWORD_RULE } from "./secret-shapes.ts";
import {
  type ByteMachine,
  byteSet,
  LOOK_BACK_BYTES,
  type MatchContext,
  readBytewise,
  type ShapeMatcher,
} from "./shape-matcher.ts";

const USER_INFO = byteSet("!$%&()*+,.0-9;=A-Z\\[\\]^_a-z{|}~-");

/** `scheme://user:password@host`: the password. */
export function createUrlMatcher(number: number, context: MatchContext): ShapeMatcher {
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
          context.found(passwordAt, at, { rule: URL_PASSWORD_RULE, number });
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
