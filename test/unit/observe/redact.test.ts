import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRedactor, REDACTION_MARK } from "../../../src/observe/redact.ts";
import { secretForms } from "../../../src/policy/secret-forms.ts";

function redact(secrets: readonly string[], ...chunks: Array<string | Uint8Array>): Buffer {
  const redactor = createRedactor(secrets);
  return Buffer.concat([...chunks.map((chunk) => redactor.push(chunk)), redactor.end()]);
}

/** The obvious way: look for every form at every place, drop the union, mark each run. */
function redactNaively(secrets: readonly string[], input: Buffer): Buffer {
  const hit = new Uint8Array(input.length + 1);
  const bytes = input.toString("latin1");
  for (const form of secrets.flatMap(secretForms)) {
    const needle = Buffer.from(form).toString("latin1");
    for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, at + 1)) {
      hit.fill(1, at, at + needle.length);
    }
  }
  const out: Buffer[] = [];
  for (let i = 0; i < input.length; i += 1) {
    if (hit[i] === 0) out.push(input.subarray(i, i + 1));
    else if (i === 0 || hit[i - 1] === 0) out.push(Buffer.from(REDACTION_MARK));
  }
  return Buffer.concat(out);
}

/** Secrets and texts over two letters, so that they overlap, nest and nearly match all the time. */
const secret = fc.stringMatching(/^[ab]{6,12}$/);
const text = fc
  .array(fc.oneof(secret, fc.stringMatching(/^[ab]{0,5}$/), fc.constant("\n")))
  .map((p) => p.join(""));

describe("createRedactor", () => {
  test("gives the same as looking for every form at every place, however the stream is cut", () => {
    fc.assert(
      fc.property(
        fc.array(secret, { minLength: 1, maxLength: 4 }),
        text,
        fc.array(fc.nat({ max: 9 }), { minLength: 1 }),
        (secrets, body, cuts) => {
          const input = Buffer.from(body);
          const chunks: Buffer[] = [];
          for (let from = 0, n = 0; from < input.length; n += 1) {
            const size = cuts[n % cuts.length] ?? 0;
            chunks.push(input.subarray(from, from + size));
            from += n > 10_000 ? input.length : size === 0 && cuts.every((c) => c === 0) ? 1 : size;
            if (cuts.every((c) => c === 0)) chunks.push(input.subarray(from - 1, from));
          }
          const out = redact(secrets, ...chunks);
          expect(out.toString("latin1")).toBe(redactNaively(secrets, input).toString("latin1"));
          for (const form of secrets) expect(out.includes(form)).toBe(false);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("any bytes pass unchanged where there is no secret", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), (chunks) => {
        expect(redact(["a-very-long-secret-value"], ...chunks)).toEqual(Buffer.concat(chunks));
      }),
    );
  });

  test("a secret never comes through in base64, inside a longer text, at any alignment", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 9, maxLength: 40 }),
        fc.string(),
        fc.string(),
        (raw, before, after) => {
          const value = `${raw.trim()}$/~>?x9`;
          const encoded = Buffer.from(before + value + after).toString("base64");
          for (const form of [encoded, encoded.replaceAll("+", "-").replaceAll("/", "_")]) {
            const out = redact([value], `token=${form}\n`).toString();
            expect(out).toContain(REDACTION_MARK);
            // At most the characters that also hold bits of the neighbours are left.
            expect(out.length - "token=\n".length - REDACTION_MARK.length).toBeLessThanOrEqual(
              Math.ceil((Buffer.byteLength(before) + Buffer.byteLength(after)) * 1.34) + 8,
            );
          }
        },
      ),
    );
  });

  test.each([
    ["plain", "sk-live/abc+def=123"],
    ["percent-encoded", "sk-live%2Fabc%2Bdef%3D123"],
    ["percent-encoded in lower case", "sk-live%2fabc%2bdef%3d123"],
  ])("finds a %s form", (_, form) => {
    expect(redact(["sk-live/abc+def=123"], `x ${form} y`).toString()).toBe("x [redacted] y");
  });

  test("finds a secret of several lines whole, JSON-escaped, with CRLF, and line by line when indented", () => {
    const key =
      "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQDZ\n-----END KEY-----\n";
    expect(redact([key], `<${key}>`).toString()).toBe("<[redacted]\n>");
    expect(redact([key], JSON.stringify({ key })).toString()).toBe('{"key":"[redacted]\\n"}');
    expect(redact([key], `<${key.replaceAll("\n", "\r\n")}>`).toString()).toBe("<[redacted]\r\n>");
    expect(redact([key], key.replace(/^/gm, "  | ")).toString()).toBe(
      "  | -----BEGIN KEY-----\n  | [redacted]\n  | [redacted]\n  | -----END KEY-----\n  | ",
    );
  });

  test("holds back only what could still become a secret, and lets it go when it does not", () => {
    const redactor = createRedactor(["correct-horse"]);
    expect(redactor.push("password: ").toString()).toBe("password: ");
    expect(redactor.push("correct").toString()).toBe("");
    expect(redactor.push("ion ").toString()).toBe("correction ");
    expect(redactor.push("correct-h").toString()).toBe("");
    expect(redactor.push("orse").toString()).toBe("[redacted]");
    expect(redactor.push("cor").toString()).toBe("");
    expect(redactor.end().toString()).toBe("cor");
  });

  test("secrets that overlap or touch leave one mark and no part of either", () => {
    expect(redact(["abcdef", "defghi"], "-abcdefghi-").toString()).toBe("-[redacted]-");
    expect(redact(["bcdefg", "abcdefgh"], "-abcd", "efgh-").toString()).toBe("-[redacted]-");
    expect(redact(["bcdefg", "abcdefgh"], "-abcdefgX-").toString()).toBe("-a[redacted]X-");
    expect(redact(["abcdef"], "abc", "defabc", "def").toString()).toBe("[redacted]");
  });

  test("short secrets are left alone with a warning that does not name them", () => {
    const redactor = createRedactor(["dev", "    ab    ", "long-enough"]);
    expect(redactor.push("dev long-enough").toString()).toBe("dev [redacted]");
    expect(redactor.warnings).toEqual([
      "2 of 3 secrets are shorter than 6 characters and are not redacted: use longer ones",
    ]);
  });

  test("a stream of near misses is read in linear time", () => {
    const secrets = [`${"a".repeat(2000)}b`];
    const chunk = Buffer.alloc(1 << 20, "a");
    const redactor = createRedactor(secrets);
    let bytes = 0;
    const start = performance.now();
    for (let i = 0; i < 16; i += 1) bytes += redactor.push(chunk).length;
    bytes += redactor.end().length;
    expect(bytes).toBe(16 << 20);
    // Trying each place anew would take 2000 times as long as one look at each byte.
    expect(performance.now() - start).toBeLessThan(5000);
  });
});
