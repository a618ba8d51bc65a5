import type { ResourceUse } from "../../model/caps.ts";
import type { Failure } from "../../model/failure.ts";
import type { KillCause, SandboxSpec } from "../sandbox.ts";
import { innerTimeoutSeconds } from "./create-body.ts";
import type { FullPlace } from "./disk-space.ts";

/** Everything known about an end, gathered before anything is concluded from it. */
export interface ExitFacts {
  readonly exitCode: number;
  /** What `kill` was called with, if it reached the container. */
  readonly killedBecause: KillCause | null;
  readonly use: ResourceUse;
  /** By our monotonic clock, from before the start was asked for. */
  readonly elapsedMs: number;
  /** A place that was full at the end. */
  readonly full: FullPlace | null;
  /** Numbers of the signals that the engine sent on the order of somebody else. */
  readonly foreignSignals: readonly number[];
  /** Whether the kernel killed for memory anywhere on this host meanwhile. */
  readonly wasHostShortOfMemory: boolean;
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

/**
 * Finds the cause, the most specific one first. Null means: ended by itself, code 0, nothing was wrong.
 *
 * A kill counts as the host's where there is evidence: the engine's own event, or a host that ran out of memory. Without, SIGKILL and
 * SIGTERM are the task's own doing, as with `kill -9 $$`: else a task could get itself retried as a fault of the host.
 * LIMITATION: a signal that somebody on the host sends past the engine, straight to a process, looks the same as that.
 */
export function classifyExit(facts: ExitFacts, spec: SandboxSpec): Failure | null {
  const { exitCode, use } = facts;
  if (facts.killedBecause === "cancelled") return { reason: "cancelled", fault: "task" };
  if (facts.killedBecause === "timeout") {
    return { reason: "timeout", fault: "agent", limitMs: Math.round(facts.elapsedMs), by: "host" };
  }
  if (facts.killedBecause === "disk-full") {
    // Who ordered it has measured, and knows more.
    const limitBytes = spec.caps.diskBytes ?? 0;
    return {
      reason: "disk-full",
      fault: "agent",
      limitBytes,
      cap: "disk",
      of: "bytes",
      by: "watch",
      exitCode,
    };
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
  if (denied > 0) {
    const { pids: limit } = spec.caps;
    return { reason: "pids", fault: "agent", limit, peak: use.peakPids, denied, exitCode };
  }
  if (facts.full !== null) return diskFull(facts.full, facts, spec);
  if (facts.isCommandMissing) {
    return { reason: "command-not-found", fault: "task", command: spec.argv[0] ?? "", exitCode };
  }
  const signal = SIGNALS[exitCode - 128];
  if (signal !== undefined && facts.foreignSignals.includes(exitCode - 128)) {
    return { reason: "killed", fault: "host", signal, evidence: "engine-order" };
  }
  if (exitCode === KILLED && facts.wasHostShortOfMemory) {
    return { reason: "killed", fault: "host", signal: "SIGKILL", evidence: "host-memory" };
  }
  return { reason: "exit", fault: "agent", exitCode, ...(signal === undefined ? {} : { signal }) };
}

function diskFull(full: FullPlace, { exitCode }: ExitFacts, { caps }: SandboxSpec): Failure {
  const { cap, place, of, usedBytes: peakBytes } = full;
  const limitBytes = cap === "tmp" ? caps.tmpBytes : (caps.diskBytes ?? peakBytes);
  return {
    reason: "disk-full",
    fault: "agent",
    limitBytes,
    peakBytes,
    cap,
    place,
    of,
    by: "kernel",
    exitCode,
  };
}
