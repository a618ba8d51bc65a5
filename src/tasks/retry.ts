import type { Failure, FailureReason } from "../model/failure.ts";
import type { TaskId } from "../model/ids.ts";
import type { RetryPolicy } from "../model/task.ts";
import { jitterShare } from "./jitter.ts";

/** Faults of the host that the next attempt would meet again, so that waiting does not help. */
const LASTING_HOST_FAULTS: ReadonlySet<FailureReason> = new Set(["image-missing", "caps-not-enforced"]);

/** Whether the policy grants another attempt after attempt `attempt` (from 1) ended in `failure`. */
export function isRetryGranted(policy: RetryPolicy, failure: Failure, attempt: number): boolean {
  if (attempt > policy.max) return false;
  if (policy.on.includes(failure.reason)) return true;
  return failure.fault === "host" && !LASTING_HOST_FAULTS.has(failure.reason);
}

/** How long to wait after attempt `attempt` (from 1) failed: exponential, capped, the jitter share of it drawn by hash. Whole milliseconds. */
export function retryDelayMs(policy: RetryPolicy, seed: number, taskId: TaskId, attempt: number): number {
  // 0 * Infinity is NaN: a base of 0 means no wait, however large the power grows.
  const grown = policy.baseMs === 0 ? 0 : policy.baseMs * policy.factor ** (attempt - 1);
  const delayMs = Math.min(grown, policy.maxDelayMs);
  return Math.round(delayMs * (1 - policy.jitter + policy.jitter * jitterShare(seed, taskId, attempt)));
}
