/**
 * The executor of this host. An attempt's outcome is told as soon as it is known (`done`); what the attempt made is taken back behind it
 * (`released`), off the critical path of dependents, and one failing step does not keep the others from running.
 */
import { formatAttempt } from "../model/ids.ts";
import { AttemptFailed, toFailure } from "./attempt-failure.ts";
import type { AttemptHandle, AttemptListener, AttemptRequest, AttemptResult, Executor } from "./executor.ts";
import type { Control, LocalExecutorDeps, UndoStep } from "./executor-deps.ts";
import { endGracefully, runAttempt } from "./run-attempt.ts";
import { createSweep } from "./sweep.ts";

/** Builds the executor that runs attempts on this host's engine. */
export function createLocalExecutor(deps: LocalExecutorDeps): Executor {
  const releasing = new Set<Promise<void>>();
  return {
    run(request, listener) {
      const handle = startAttempt(deps, request, listener);
      const released = handle.released.finally(() => releasing.delete(released));
      releasing.add(released);
      return handle;
    },
    async readFile(settings, commit, path) {
      return (await deps.repositories.store(settings.repository)).readFile(commit, path);
    },
    sweep: createSweep(deps),
    async close() {
      await Promise.all(releasing);
      await deps.engine.close();
    },
  };
}

function startAttempt(
  deps: LocalExecutorDeps,
  request: AttemptRequest,
  listener: AttemptListener,
): AttemptHandle {
  const control: Control = { because: null, running: null };
  const undo: UndoStep[] = [];
  const done = runAttempt(deps, request, listener, control, undo).catch((error: unknown): AttemptResult => {
    const failure = error instanceof AttemptFailed ? error.failure : toFailure(error, "wait");
    return { outcome: { status: "failed", failure }, use: null, mainMs: null };
  });
  const released = done.then(async () => {
    for (const step of undo.reverse()) {
      await step.run().catch((error: unknown) => {
        deps.logger.warn(
          { attempt: formatAttempt(request.key), step: step.what, error: String(error) },
          "release step failed",
        );
        listener.warning(`${step.what} could not be cleaned up; \`bulkhead gc\` will retry`);
      });
    }
  });
  return {
    done,
    released,
    stop(because) {
      if (control.because !== null) return;
      control.because = because;
      if (control.running) endGracefully(control.running, because);
    },
    sample: async () => (control.running ? control.running.sample() : null),
  };
}
