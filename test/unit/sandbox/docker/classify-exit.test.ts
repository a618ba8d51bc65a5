import { describe, expect, test } from "vitest";
import { classifyExit, type ExitFacts } from "../../../../src/sandbox/docker/classify-exit.ts";
import { SAMPLE_SPEC } from "./sample-spec.ts";

const FULL = { cap: "disk", place: "/workspace", usedBytes: 4_990, of: "bytes" } as const;
const SPEC = { ...SAMPLE_SPEC, innerTimeoutMs: 10_000, caps: { ...SAMPLE_SPEC.caps, diskBytes: 5_000 } };

function classify(over: Partial<ExitFacts> & { oomKills?: number; pidsDenied?: number }) {
  const { oomKills = 0, pidsDenied = 0, ...facts } = over;
  return classifyExit(
    {
      exitCode: 0,
      killedBecause: null,
      elapsedMs: 500,
      full: null,
      foreignSignals: [],
      wasHostShortOfMemory: false,
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
    ["a full disk that the program coped with", { full: FULL }, null],
    ["a code", { exitCode: 4 }, { reason: "exit", exitCode: 4 }],
    ["a crash", { exitCode: 139 }, { reason: "exit", exitCode: 139, signal: "SIGSEGV" }],
    ["memory, main", { exitCode: 137, oomKills: 1 }, { reason: "oom", victim: "main", peakBytes: 900 }],
    ["memory, child", { exitCode: 0, oomKills: 1 }, { reason: "oom", victim: "child", exitCode: 0 }],
    ["memory before forks", { exitCode: 1, oomKills: 1, pidsDenied: 1 }, { reason: "oom" }],
    ["forks", { exitCode: 1, pidsDenied: 2 }, { reason: "pids", limit: 64, peak: 3, denied: 2 }],
    [
      "disk",
      { exitCode: 1, full: FULL },
      { reason: "disk-full", limitBytes: 5_000, peakBytes: 4_990, by: "kernel" },
    ],
    [
      "scratch space",
      { exitCode: 1, full: { cap: "tmp", place: "/tmp", usedBytes: 7, of: "files" } },
      { reason: "disk-full", limitBytes: SPEC.caps.tmpBytes, cap: "tmp", place: "/tmp", of: "files" },
    ],
    [
      "the watch's kill",
      { exitCode: 137, killedBecause: "disk-full" },
      { reason: "disk-full", limitBytes: 5_000, by: "watch" },
    ],
    [
      "no command",
      { exitCode: 127, isCommandMissing: true },
      { reason: "command-not-found", command: "tool" },
    ],
    ["a kill of its own", { exitCode: 137 }, { reason: "exit", signal: "SIGKILL" }],
    ["a SIGTERM of its own", { exitCode: 143 }, { reason: "exit", signal: "SIGTERM" }],
    [
      "a foreign kill",
      { exitCode: 137, foreignSignals: [9] },
      { reason: "killed", signal: "SIGKILL", evidence: "engine-order" },
    ],
    ["a foreign SIGTERM", { exitCode: 143, foreignSignals: [15] }, { reason: "killed", signal: "SIGTERM" }],
    ["another end after a foreign signal", { exitCode: 3, foreignSignals: [15] }, { reason: "exit" }],
    [
      "a kill while the host was short of memory",
      { exitCode: 137, wasHostShortOfMemory: true },
      { reason: "killed", signal: "SIGKILL", evidence: "host-memory" },
    ],
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
