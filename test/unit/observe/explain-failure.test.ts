import { describe, expect, test } from "vitest";
import type { Failure, FailureReason } from "../../../src/model/failure.ts";
import { describeCap, explainFailure } from "../../../src/observe/explain-failure.ts";
import { id, OOM } from "../../support/sample-run.ts";

const MIB = 1024 ** 2;

/** One of each reason; the type makes a forgotten one an error. */
const EXAMPLES: Readonly<{ [R in FailureReason]: Extract<Failure, { reason: R }> }> = {
  exit: { reason: "exit", fault: "agent", exitCode: 3, signal: "SIGSEGV", hint: "core dumped" },
  timeout: { reason: "timeout", fault: "agent", limitMs: 90_000, by: "host" },
  oom: OOM as Extract<Failure, { reason: "oom" }>,
  pids: { reason: "pids", fault: "agent", limit: 256, denied: 1234, exitCode: 1 },
  "disk-full": { reason: "disk-full", fault: "agent", limitBytes: 100 * MIB, exitCode: 1 },
  killed: { reason: "killed", fault: "host", signal: "SIGKILL" },
  cancelled: { reason: "cancelled", fault: "task" },
  "agent-error": { reason: "agent-error", fault: "agent", message: "no \u001b[31mkey\u001b[0m" },
  "engine-lost": { reason: "engine-lost", fault: "host", phase: "start", message: "ECONNRESET" },
  "host-error": { reason: "host-error", fault: "host", phase: "snapshot", message: "ENOSPC" },
  "image-missing": { reason: "image-missing", fault: "host", image: "node:24" },
  "command-not-found": { reason: "command-not-found", fault: "task", command: "claud", exitCode: 127 },
  "caps-not-enforced": {
    reason: "caps-not-enforced",
    fault: "host",
    caps: [
      { cap: "memory", requested: 512 * MIB, actual: null, state: "not-enforced", note: "no controller" },
      // The report of an attempt lists every cap; only what is missing is said.
      { cap: "pids", requested: 64, actual: 64, state: "enforced" },
    ],
  },
  "parents-conflict": {
    reason: "parents-conflict",
    fault: "task",
    parents: [id("a"), id("b")],
    files: ["src/x.ts", "bad\u202ename"],
  },
  "result-refused": {
    reason: "result-refused",
    fault: "agent",
    problems: [{ path: "sock\u001b[0m", kind: "special-file", detail: "socket" }],
  },
  "runner-bug": {
    reason: "runner-bug",
    fault: "runner",
    phase: "collect",
    message: "x is not a function",
  },
};

describe("explainFailure", () => {
  test.each(Object.values(EXAMPLES))(
    "$reason: one headline, a next step, nothing that steers a terminal",
    (failure) => {
      const { headline, detail, hint } = explainFailure(failure);
      for (const text of [headline, hint, ...detail]) {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not come through.
        expect(text).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/);
        expect(text).not.toMatch(/undefined|null|NaN|\[object/);
      }
      expect(headline.length).toBeGreaterThan(5);
      expect(hint.length).toBeGreaterThan(10);
    },
  );

  test.each<[FailureReason, string, string]>([
    [
      "oom",
      "out of memory: cap 512 MiB, peak 512 MiB",
      "raise caps.memory above 512 MiB, or let the task use fewer processes at once",
    ],
    [
      "pids",
      "process limit of 256 reached: 1,234 forks were refused",
      "raise caps.pids above 256, or look for a process that starts itself again",
    ],
    [
      "timeout",
      "time limit of 1m 30s passed",
      "raise the task's timeout, or split the task; `bulkhead logs` shows how far it came",
    ],
    [
      "disk-full",
      "disk full: the workspace may hold 100 MiB of changes",
      "raise caps.disk above 100 MiB, or keep build output out of the workspace",
    ],
    ["exit", "ended with exit code 3 (SIGSEGV)", "`bulkhead logs` shows its output"],
    [
      "command-not-found",
      "no such command in the image: claud (exit code 127)",
      "correct the task's command, or take an image that has it",
    ],
    ["agent-error", "the agent gave up: no key", "`bulkhead logs` shows what came before it"],
  ])("%s names limit, value and next step", (reason, headline, hint) => {
    expect(explainFailure(EXAMPLES[reason])).toMatchObject({ headline, hint });
  });

  test("a full disk says which place, how much lay there, what ran out, and who noticed", () => {
    const full = { reason: "disk-full", fault: "agent", limitBytes: 16 * MIB, exitCode: 1 } as const;
    const tmp = { ...full, cap: "tmp", place: "/tmp", peakBytes: MIB, of: "files", by: "kernel" } as const;
    expect(explainFailure(tmp)).toEqual({
      headline: "disk full: /tmp may hold 16 MiB, 1 MiB in use",
      detail: [
        "It ran out of room for further files, not of bytes.",
        "The main process ended with exit code 1.",
      ],
      hint: "raise caps.tmp above 16 MiB (it counts against caps.memory), or write large files to the workspace",
    });
    const watched = { ...full, cap: "disk", peakBytes: 20 * MIB, of: "bytes", by: "watch" } as const;
    expect(explainFailure(watched)).toMatchObject({
      headline: "disk full: the workspace may hold 16 MiB of changes, 20 MiB in use",
      detail: ["No kernel limit holds the workspace here: bulkhead measured it and ended the attempt."],
    });
  });

  test("a kill names its evidence; one of the task's own is no fault of the host", () => {
    const killed = { reason: "killed", fault: "host", signal: "SIGKILL" } as const;
    expect(explainFailure({ ...killed, evidence: "engine-order" }).detail).toContain(
      "Somebody had the engine send the signal.",
    );
    expect(explainFailure({ ...killed, evidence: "host-memory" }).detail).toContain(
      "The host itself was short of memory then.",
    );
    const own = { reason: "exit", fault: "agent", exitCode: 137, signal: "SIGKILL" } as const;
    expect(explainFailure(own).detail).toEqual([
      "Nobody had the engine send the signal: it came from the task itself.",
    ]);
  });

  test("lists files, caps and problems, hostile names escaped, long lists counted", () => {
    expect(explainFailure(EXAMPLES["parents-conflict"]).detail).toEqual([
      "conflict in src/x.ts",
      'conflict in "bad\\u{202e}name"',
    ]);
    expect(explainFailure(EXAMPLES["result-refused"]).detail).toEqual([
      '"sock\\x1b[0m": a device, socket or pipe (socket)',
    ]);
    expect(explainFailure(EXAMPLES["caps-not-enforced"]).detail).toEqual([
      "memory: asked for 512 MiB, not enforced (no controller)",
    ]);
    const many = { ...EXAMPLES["parents-conflict"], files: Array.from({ length: 25 }, (_, i) => `f${i}`) };
    expect(explainFailure(many).detail.at(-1)).toBe("and 15 more");
  });

  test("a cap is told in its own unit", () => {
    expect(describeCap({ cap: "cpus", requested: 0.5, actual: 0.5, state: "enforced" })).toBe(
      "cpus: 0.5 enforced",
    );
    expect(describeCap({ cap: "pids", requested: 64, actual: 128, state: "not-enforced" })).toBe(
      "pids: asked for 64, the kernel says 128, not enforced",
    );
  });
});
