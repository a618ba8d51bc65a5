import type { ResourceUse } from "../../model/caps.ts";
import type { Failure } from "../../model/failure.ts";
import type { SandboxSpec } from "../sandbox.ts";
import { innerTimeoutSeconds } from "./create-body.ts";

/** Everything known about an end, gathered before anything is concluded from it. */
export interface ExitFacts {
  readonly exitCode: number;
  /** What `kill` was called with, if it reached the container. */
  readonly killedBecause: "timeout" | "cancelled" | null;
  readonly wasTerminated: boolean;
  readonly use: ResourceUse;
  /** By our monotonic clock, from before the start was asked for. */
  readonly elapsedMs: number;
  readonly isDiskFull: boolean;
  readonly isCommandMissing: boolean;
}

const SIGNALS: Readonly<Record<number, string>> = {
  1: "SIGHUP",
  2: "SIGINT",
  3: "SIGQUIT",
  4: "SIGILL",
  6: "SIGABRT",
  7: "SIGBUS",
  8: "SIGFPE",
  9: "SIGKILL",
  11: "SIGSEGV",
  13: "SIGPIPE",
  15: "SIGTERM",
  24: "SIGXCPU",
  25: "SIGXFSZ",
  31: "SIGSYS",
};
const KILLED = 137;
const TERMINATED = 143;
/** What timeout(1) ends with: 124, or after its second signal 137; busybox passes the signal's 143 on. */
const TIMEOUT_CODES: readonly number[] = [124, KILLED, TERMINATED];

/** Finds the cause, the most specific one first. Null means: ended by itself, code 0, nothing was wrong. */
export function classifyExit(facts: ExitFacts, spec: SandboxSpec): Failure | null {
  const { exitCode, use } = facts;
  if (facts.killedBecause === "cancelled") return { reason: "cancelled", fault: "task" };
  if (facts.killedBecause === "timeout") {
    return { reason: "timeout", fault: "agent", limitMs: Math.round(facts.elapsedMs), by: "host" };
  }
  if ((use.oomKills ?? 0) > 0) {
    return {
      reason: "oom",
      fault: "agent",
      // 137 is the main process' own SIGKILL; any other code means that it lived on to end with it.
      victim: exitCode === KILLED ? "main" : "child",
      limitBytes: spec.caps.memoryBytes,
      peakBytes: use.peakMemoryBytes,
      exitCode,
    };
  }
  const innerLimitMs = innerTimeoutSeconds(spec) * 1_000;
  // timeout(1) starts after our clock, so an end before the limit cannot be its work, whatever the code.
  if (innerLimitMs > 0 && facts.elapsedMs >= innerLimitMs && TIMEOUT_CODES.includes(exitCode)) {
    return { reason: "timeout", fault: "agent", limitMs: innerLimitMs, by: "container" };
  }
  if (exitCode === 0) return null;
  const denied = use.pidsDenied ?? 0;
  if (denied > 0) return { reason: "pids", fault: "agent", limit: spec.caps.pids, denied, exitCode };
  if (facts.isDiskFull && spec.caps.diskBytes !== null) {
    return { reason: "disk-full", fault: "agent", limitBytes: spec.caps.diskBytes, exitCode };
  }
  if (facts.isCommandMissing) {
    return { reason: "command-not-found", fault: "task", command: spec.argv[0] ?? "", exitCode };
  }
  const signal = SIGNALS[exitCode - 128];
  if (exitCode === KILLED || (exitCode === TERMINATED && !facts.wasTerminated)) {
    return { reason: "killed", fault: "host", signal: signal ?? "SIGKILL" };
  }
  return { reason: "exit", fault: "agent", exitCode, ...(signal === undefined ? {} : { signal }) };
}
