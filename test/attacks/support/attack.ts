import { expect, test } from "vitest";

/**
 * One attack, run twice: against a set-up without protection, where it MUST work (else the test would prove nothing), and against
 * bulkhead, where it MUST fail. `docs/security.md` lists every id with its claim; `documentation.test.ts` compares.
 */
export interface Attack<E> {
  /** `family/name`; written out as a literal, since the list in the documentation is compared with the source. */
  readonly id: string;
  /** What an attacker would say to have done. */
  readonly claim: string;
  /** What the unprotected set-up is, in words. */
  readonly baseline: string;
  unprotected(): E | Promise<E>;
  bulkhead(): E | Promise<E>;
  succeeded(evidence: E): boolean;
}

/** Registers the two assertions as one test. */
export function attack<E>({ id, claim, baseline, unprotected, bulkhead, succeeded }: Attack<E>): void {
  test(`${id}: ${claim}`, async () => {
    const open = await unprotected();
    expect(succeeded(open), `works against ${baseline}; ${show(open)}`).toBe(true);
    const guarded = await bulkhead();
    expect(succeeded(guarded), `fails against bulkhead; ${show(guarded)}`).toBe(false);
  });
}

function show(evidence: unknown): string {
  return JSON.stringify({ evidence }).slice(0, 2000);
}
