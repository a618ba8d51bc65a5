import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatError,
  formatResult,
  isRequestId,
  parseFrame,
  rpcError,
} from "../../../src/protocol/json-rpc.ts";

const faultOf = (text: string) => {
  const parsed = parseFrame(text);
  return parsed.ok ? undefined : parsed.error;
};

describe("parseFrame", () => {
  test("reads a call with each kind of id", () => {
    for (const id of ["a", 1, 1.5, -3, null, ""]) {
      const parsed = parseFrame(JSON.stringify({ jsonrpc: "2.0", id, method: "ping", params: { a: 1 } }));
      expect(parsed).toEqual({ ok: true, value: { id, method: "ping", params: { a: 1 } } });
    }
  });

  test("a call without an id is a notification", () => {
    const parsed = parseFrame('{"jsonrpc":"2.0","method":"ping"}');
    expect(parsed).toEqual({ ok: true, value: { id: undefined, method: "ping", params: undefined } });
  });

  test("refuses batches and says what to do instead", () => {
    for (const text of ["[]", '[{"jsonrpc":"2.0","id":1,"method":"ping"}]']) {
      const fault = faultOf(text);
      expect(fault?.error.code).toBe(-32600);
      expect(fault?.error.message).toContain("each call as its own line");
    }
  });

  test.each([
    ["{", -32700],
    ["", -32700],
    ["\u{FFFD}", -32700],
    ["1", -32600],
    ["null", -32600],
    ['"x"', -32600],
    ["{}", -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":""}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":7}', -32600],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1e999,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32600],
  ])("%s is refused with %i", (text, code) => {
    expect(faultOf(text)?.error.code).toBe(code);
  });

  test("an id is echoed where it could be read, and only then", () => {
    expect(faultOf('{"jsonrpc":"1.0","id":"x","method":"ping"}')?.id).toBe("x");
    expect(faultOf(`{"jsonrpc":"2.0","id":"${"x".repeat(257)}","method":"ping"}`)?.id).toBeNull();
    expect(faultOf(`{"jsonrpc":"2.0","id":1,"method":"${"m".repeat(129)}"}`)?.id).toBe(1);
  });

  test("never throws and never repeats the input in its message", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((json) => json.slice(1)),
        ),
        (text) => {
          const fault = faultOf(text);
          if (fault) expect(fault.error.message.length).toBeLessThan(200);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("deep nesting is no crash", () => {
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    const parsed = parseFrame(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${deep}}}`);
    expect(parsed.ok || parsed.error.error.code === -32700).toBe(true);
  });
});

describe("replies", () => {
  test("are JSON on one line, whatever they hold", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ maxLength: 256 }), fc.integer(), fc.constant(null)),
        fc.jsonValue(),
        (id, value) => {
          const text = formatResult(id, value);
          expect(text).not.toContain("\n");
          expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify({ jsonrpc: "2.0", id, result: value })));
        },
      ),
    );
  });

  test("a missing result becomes null", () => {
    expect(formatResult(1, undefined)).toBe('{"jsonrpc":"2.0","id":1,"result":null}');
  });

  test("errors carry code, message and the reason's name", () => {
    expect(JSON.parse(formatError(3, rpcError("quota", "enough", { limit: 2 })))).toEqual({
      jsonrpc: "2.0",
      id: 3,
      error: { code: 4007, message: "enough", data: { reason: "quota", limit: 2 } },
    });
  });
});

test("isRequestId bounds ids", () => {
  expect([Number.NaN, Number.POSITIVE_INFINITY, {}, [], true, "x".repeat(257)].some(isRequestId)).toBe(false);
  expect([1, "a", null, "x".repeat(256)].every(isRequestId)).toBe(true);
});
