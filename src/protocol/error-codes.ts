/**
 * Every error code that crosses a door, with one sentence each (docs/bus.md lists the same). The five of JSON-RPC keep their numbers;
 * ours are positive, so they can never fall into the range -32768 … -32000 that JSON-RPC reserves.
 *
 * -32602 is used only when the caller's params fail their schema; everything unforeseen on our side is -32603.
 */
export const ERROR_CODES = {
  "parse-error": { code: -32700, meaning: "The frame is not JSON, or not UTF-8." },
  "invalid-request": { code: -32600, meaning: "The frame is JSON but not a JSON-RPC 2.0 request." },
  "method-not-found": { code: -32601, meaning: "There is no method of that name behind this door." },
  "invalid-params": { code: -32602, meaning: "The params do not fit the method's schema." },
  "internal-error": {
    code: -32603,
    meaning: "Something unforeseen failed on the host; its log has the details under the given id.",
  },
  "unknown-task": { code: 4001, meaning: "The run has no task of that id." },
  "not-submitted": {
    code: 4002,
    meaning: "The task has not submitted a patch yet, so there is nothing to read.",
  },
  "not-a-dependency": { code: 4003, meaning: "The caller's task may not read from that task." },
  "no-such-file": { code: 4004, meaning: "The commit has no regular file at that path." },
  "too-large": { code: 4005, meaning: "The file, artifact or answer is larger than the bus carries." },
  "bad-name": { code: 4006, meaning: "The name cannot be used for an artifact." },
  quota: { code: 4007, meaning: "The attempt has used up its share of artifacts." },
  "rate-limited": {
    code: 4008,
    meaning: "The attempt calls faster than its rate; try again after `retryAfterMs`.",
  },
  "frame-too-large": {
    code: 4009,
    meaning: "The frame or body is longer than the door takes; the connection is closed.",
  },
  "too-many-connections": {
    code: 4010,
    meaning: "The door has all the connections it takes; close one and try again.",
  },
  "not-text": { code: 4011, meaning: "The file is not valid UTF-8; ask for it as base64." },
  "partial-frame": {
    code: 4012,
    meaning: "A frame was begun and not finished in time; the connection is closed.",
  },
} as const satisfies Record<string, { readonly code: number; readonly meaning: string }>;

export type ErrorName = keyof typeof ERROR_CODES;

/** The table's name of a code, or undefined for a code that is not ours. */
export function nameOfCode(code: number): ErrorName | undefined {
  for (const [name, entry] of Object.entries(ERROR_CODES)) {
    if (entry.code === code) return name as ErrorName;
  }
  return undefined;
}
