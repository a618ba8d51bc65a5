import type { AttemptPhase, Failure } from "../model/failure.ts";
import { RunnerError } from "../model/runner-error.ts";

/** Carries a failure, which is a value, out of the steps of an attempt. Never leaves the executor. */
export class AttemptFailed extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.reason);
    this.failure = failure;
  }
}

/** The failure of an attempt that was told to stop. */
export function stopFailure(because: "timeout" | "cancelled", limitMs: number): Failure {
  return because === "timeout"
    ? { reason: "timeout", fault: "agent", limitMs, by: "host" }
    : { reason: "cancelled", fault: "task" };
}

/** What a thrown error means for the attempt: the engine's, the machine's, or our own mistake. */
export function toFailure(error: unknown, phase: AttemptPhase): Failure {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof RunnerError) {
    if (error.code === "engine-unreachable") return { reason: "engine-lost", fault: "host", phase, message };
    return {
      reason: "host-error",
      fault: "host",
      phase,
      message: error.hint ? `${message} (${error.hint})` : message,
    };
  }
  // An errno comes from the machine; anything without one is our own mistake.
  const isHost = error instanceof Error && "code" in error && typeof error.code === "string";
  return isHost
    ? { reason: "host-error", fault: "host", phase, message }
    : { reason: "runner-bug", fault: "runner", phase, message };
}
