import { describe, expect, test } from "vitest";
import { classifyExit, type ExitFacts } from "../../../../src/sandbox/docker/classify-exit.ts";
import { SAMPLE_SPEC } from "./sample-spec.ts";

const SPEC = { ...SAMPLE_SPEC, innerTimeoutMs: 10_000, caps: { ...SAMPLE_SPEC.caps, diskBytes: 5_000 } };

function classify(over: Partial<ExitFacts> & { oomKills?: number; pidsDenied?: number }) {
  const { oomKills = 0, pidsDenied = 0, ...facts } = over;
  return classifyExit(
    {
      exitCode: 0,
      killedBecause: null,
      wasTerminated: false,
      elapsedMs: 500,
      isDiskFull: false,
      isCommandMissing: false,
      use: {
        cpuMs: 1,
        peakMemoryBytes: 900,
        peakPids: 3,
        pidsDenied,
        oomKills,
        ioReadBytes: null,
        ioWriteBytes: null,
      },
      ...facts,
    },
    SPEC,
  );
}

describe("classifyExit", () => {
  test.each<[string, Parameters<typeof classify>[0], object | null]>([
    ["a clean end", {}, null],
    ["refused forks that the program coped with", { pidsDenied: 3 }, null],
    ["a full disk that the program coped with", { isDiskFull: true }, null],
    ["a code", { exitCode: 4 }, { reason: "exit", exitCode: 4 }],
    ["a crash", { exitCode: 139 }, { reason: "exit", exitCode: 139, signal: "SIGSEGV" }],
    ["memory, main", { exitCode: 137, oomKills: 1 }, { reason: "oom", victim: "main", peakBytes: 900 }],
    ["memory, child", { exitCode: 0, oomKills: 1 }, { reason: "oom", victim: "child", exitCode: 0 }],
    ["memory before forks", { exitCode: 1, oomKills: 1, pidsDenied: 1 }, { reason: "oom" }],
    ["forks", { exitCode: 1, pidsDenied: 2 }, { reason: "pids", limit: 64, denied: 2 }],
    ["disk", { exitCode: 1, isDiskFull: true }, { reason: "disk-full", limitBytes: 5_000 }],
    [
      "no command",
      { exitCode: 127, isCommandMissing: true },
      { reason: "command-not-found", command: "tool" },
    ],
    ["a foreign kill", { exitCode: 137 }, { reason: "killed", signal: "SIGKILL" }],
    ["a foreign SIGTERM", { exitCode: 143 }, { reason: "killed", signal: "SIGTERM" }],
    ["our SIGTERM", { exitCode: 143, wasTerminated: true }, { reason: "exit", signal: "SIGTERM" }],
    ["our time limit", { exitCode: 137, killedBecause: "timeout" }, { reason: "timeout", by: "host" }],
    [
      "our cancel, also over memory",
      { exitCode: 137, killedBecause: "cancelled", oomKills: 1 },
      { reason: "cancelled" },
    ],
    [
      "the inner limit",
      { exitCode: 124, elapsedMs: 10_050 },
      { reason: "timeout", by: "container", limitMs: 10_000 },
    ],
    ["the inner limit's kill", { exitCode: 137, elapsedMs: 15_050 }, { reason: "timeout", by: "container" }],
    ["124 before the limit", { exitCode: 124, elapsedMs: 9_999 }, { reason: "exit", exitCode: 124 }],
    ["another code after the limit", { exitCode: 1, elapsedMs: 10_050 }, { reason: "exit", exitCode: 1 }],
  ])("%s", (_, facts, expected) => {
    const failure = classify(facts);
    if (expected === null) expect(failure).toBeNull();
    else expect(failure).toMatchObject(expected);
  });
});
