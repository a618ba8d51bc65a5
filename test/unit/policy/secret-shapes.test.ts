import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRedactor, redactBytes, redactText } from "../../../src/observe/redact.ts";
import { MAX_UNDECIDED_BYTES } from "../../../src/policy/shape-matcher.ts";
import { afterToken, randomText, SAMPLE_TOKENS, samplePrivateKey } from "../../support/sample-tokens.ts";

const redact = (text: string): string => redactText([], text);

/** Redacts in pieces that end at the given places. */
function redactCut(secrets: readonly string[], input: Buffer, cuts: readonly number[]): Buffer {
  const redactor = createRedactor(secrets);
  const ends = [...cuts, input.length].sort((a, b) => a - b);
  let from = 0;
  const out: Buffer[] = [];
  for (const end of ends) {
    out.push(Buffer.from(redactor.push(input.subarray(from, end))));
    from = end;
  }
  return Buffer.concat([...out, redactor.end()]);
}

describe("token shapes", () => {
  test.each(SAMPLE_TOKENS)("%s after %s", (rule, anchor, secret) => {
    const after = afterToken(rule);
    for (const before of ["", "x = ", '"', "\u001b[31m", "a\\n", "%3D", "(", "\t"]) {
      expect(redact(`${before}${anchor}${secret}${after}`)).toBe(
        `${before}${anchor}[redacted: ${rule}]${after}`,
      );
    }
  });

  test("a private key goes, whatever its line ends and prefixes; its borders stay", () => {
    const key = samplePrivateKey();
    const mark = "-----BEGIN RSA PRIVATE KEY-----[redacted: private-key]-----END RSA PRIVATE KEY-----";
    expect(redact(`<${key}>`)).toBe(`<${mark}>`);
    expect(redact(JSON.stringify(key))).toBe(JSON.stringify(mark));
    expect(redact(key.replaceAll("\n", "\r\n"))).toBe(mark);
    expect(redact(key.replaceAll("\n", "\n2026-11-30T10:00:00Z | "))).toBe(mark);
    expect(redact(samplePrivateKey(400, "OPENSSH PRIVATE KEY"))).toBe(mark.replaceAll("RSA", "OPENSSH"));
    const encrypted = key.replace(
      "\n",
      "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n",
    );
    expect(redact(encrypted)).toBe(mark);
  });

  test("a private key without an end goes up to its last long line, and what comes after is read again", () => {
    const key = samplePrivateKey().split("\nq2Ff9w==")[0];
    expect(redact(`${key}\nThe rest.`)).toBe(
      "-----BEGIN RSA PRIVATE KEY-----[redacted: private-key]\nThe rest.",
    );
    const words = "plain words. ".repeat(100);
    expect(redact(`${key}\n${words}`)).toBe(
      `-----BEGIN RSA PRIVATE KEY-----[redacted: private-key]\n${words}`,
    );
  });

  test.each([
    ["git object id", "commit 3f4e5d6c7b8a9f0e1d2c3b4a5968778695a4b3c2 (HEAD -> main)"],
    ["sha256", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    ["uuid", "id=123e4567-e89b-12d3-a456-426614174000"],
    [
      "integrity",
      '"integrity": "sha512-ypE5aBaqd2Qj9Y1q1S/4UjQ0fQ1v7Zc3n0H3n5l1T4nJm9kQw8e7r6t5y4u3i2o1pAsDfGhJkL+ZxCvBnM==",',
    ],
    ["word with sk-", "task-runner disk-usage-of-the-large-volume-12345678 sk-toast-1"],
    [
      "talk about keys",
      "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\nthat is how a key begins",
    ],
    ["certificate", samplePrivateKey(8, "CERTIFICATE")],
    ["public key", samplePrivateKey(8, "PUBLIC KEY")],
    ["url with a port", "listening on http://localhost:8080/path and redis://127.0.0.1:6379"],
    ["scp-like url", "git clone ssh://git@example.org:22/me/repo.git"],
    [
      "image reference",
      "docker://alpine:3.19@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
    [
      "placeholders",
      "https://user:$TOKEN@host https://user:<password>@host postgres://postgres:postgres@db https://u:***@h",
    ],
    ["bearer prose", "Bearer authentication-scheme is used; Bearer <token>; Authorization: Bearer $TOKEN"],
    ["npm variables", "npm_config_registry npm_lifecycle_event npm_package_json"],
    ["a class name", "SKView AKIAx eyJust SG.Anything.Else hf_hub_download sk_live_ ghp_ github_pat_"],
  ])("%s stays as it is", (_, text) => {
    expect(redact(text)).toBe(text);
  });

  test("base64 and random bytes stay as they are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 4096, maxLength: 16384, size: "max" }), (bytes) => {
        const image = `data:image/png;base64,${Buffer.from(bytes).toString("base64")}`;
        expect(redact(image)).toBe(image);
        expect(redactBytes([], Buffer.from(bytes)).content.equals(Buffer.from(bytes))).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  test("however the stream is cut, the result is the same", () => {
    const token = fc
      .constantFrom(...SAMPLE_TOKENS)
      .map(([rule, anchor, secret]) => anchor + secret + afterToken(rule));
    const piece = fc.oneof(
      token,
      fc.tuple(token, fc.nat(120)).map(([text, length]) => text.slice(0, length)),
      fc.constantFrom(
        "hunter2-secret",
        "hunter",
        samplePrivateKey(3),
        `${"sk-"}${"a1".repeat(5000)} `,
        `${"ey"}J${"a.".repeat(5000)}`,
        "-----BEGIN PRIVATE KEY-----",
        "-----",
        "://",
        "a:b@",
        " ",
        "\n",
        "\\n",
        "\u001b[0m",
        "x",
      ),
      fc.string({ maxLength: 12 }),
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 12 }),
        fc.array(fc.nat(3000), { maxLength: 40 }),
        fc.constantFrom([], ["hunter2-secret"], [randomText(40), `${randomText(12)}`]),
        (pieces, cuts, secrets) => {
          const input = Buffer.from(pieces.join(""));
          const whole = redactBytes(secrets, input).content.toString("latin1");
          const inside = cuts.map((cut) => Math.min(cut, input.length));
          expect(redactCut(secrets, input, inside).toString("latin1")).toBe(whole);
          const bytewise = input.length > 2000 ? inside : Array.from(input.keys());
          expect(redactCut(secrets, input, bytewise).toString("latin1")).toBe(whole);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("anchors show at once; a run is held until it is certain, and never longer than the bound", () => {
    const redactor = createRedactor([]);
    const anchor = `ghp${"_"}`;
    expect(redactor.push(`token ${anchor}`).toString()).toBe(`token ${anchor}`);
    expect(redactor.push("abc").toString()).toBe("");
    expect(redactor.push(" next? [y/n").toString()).toBe("abc next? [y/n");
    expect(redactor.push(` ${anchor}${randomText(36)}`).toString()).toBe(
      ` ${anchor}[redacted: github-token]`,
    );
    expect(redactor.push(randomText(100)).toString()).toBe("");
    expect(redactor.push(" end").toString()).toBe(" end");

    const bearer = createRedactor([]);
    let shown = bearer.push("Bearer ").length;
    for (let i = 0; i < 40; i += 1) shown += bearer.push("a".repeat(512)).length;
    expect(20_480 - shown).toBeLessThanOrEqual(MAX_UNDECIDED_BYTES);
  });

  test("a configured secret and a token that overlap leave one mark and no part of either", () => {
    const body = randomText(36);
    expect(redactText([body.slice(0, 20)], `ghp${"_"}${body} `)).toBe(`ghp${"_"}[redacted] `);
    expect(redactText([`ghp${"_"}${body}`], `ghp${"_"}${body} `)).toBe("[redacted] ");
    expect(redactText(["e-configured"], `Bearer ${body}e-configured.`)).toBe(
      "Bearer [redacted: authorization]",
    );
  });

  test("lines of megabytes and near misses are read in linear time", () => {
    const lines = [
      Buffer.alloc(4 << 20, "a"),
      Buffer.from("sk-".repeat(1 << 18)),
      Buffer.from(`Bearer ${"a".repeat(2 << 20)}`),
      Buffer.from("eyJ.".repeat(1 << 17)),
      Buffer.from("-----BEGIN PRIVATE KEY-----".repeat(1 << 14)),
      Buffer.from("://a:".repeat(1 << 16)),
    ];
    const began = performance.now();
    for (const line of lines) {
      const redactor = createRedactor(["some-configured-secret"]);
      let bytes = 0;
      for (let at = 0; at < line.length; at += 4096)
        bytes += redactor.push(line.subarray(at, at + 4096)).length;
      expect(bytes + redactor.end().length).toBe(line.length);
    }
    // About 8 MB; a look at each place anew would take hours.
    expect(performance.now() - began).toBeLessThan(15_000);
  });
});
