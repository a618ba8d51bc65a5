import { setTimeout as delay } from "node:timers/promises";
import { RunnerError } from "../../model/runner-error.ts";
import { type EngineClient, isGone, messageOf, statusOf } from "./engine-client.ts";

const GONE_WITHIN_MS = 30_000;
const LOOK_AGAIN_MS = 50;

/**
 * Removes a container in whatever state, with its anonymous volumes, and returns when the engine does not know it any
 * more. Safe to repeat and to race: "no such container" and "removal already in progress" are both fine.
 */
export async function removeContainer(client: EngineClient, id: string): Promise<void> {
  const container = client.docker.getContainer(id);
  const deadlineMs = performance.now() + GONE_WITHIN_MS;
  for (;;) {
    let problem: unknown;
    try {
      await client.call("remove container", () => container.remove({ force: true, v: true }));
      return;
    } catch (error) {
      if (isGone(error)) return;
      // 409: someone else is at it. 500: a mount of it is still busy, which passes.
      if (statusOf(error) !== 409 && statusOf(error) !== 500)
        throw asRunnerError("remove container", id, error);
      problem = error;
    }
    if (performance.now() > deadlineMs) throw asRunnerError("remove container", id, problem);
    await delay(LOOK_AGAIN_MS);
  }
}

/** For steps where the engine's no is no outcome a caller can use. */
export function asRunnerError(what: string, name: string, error: unknown): RunnerError {
  if (error instanceof RunnerError) return error;
  const status = statusOf(error);
  return new RunnerError(
    status === null ? "engine-unreachable" : "internal",
    `the engine could not ${what} ${name}: ${messageOf(error)}`,
    { cause: error, data: { name, status } },
  );
}
