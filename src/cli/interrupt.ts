import { createInterface } from "node:readline/promises";
import type { RunHandle } from "../supervisor/run-handle.ts";
import type { CliContext } from "./context.ts";
import type { OtherWriter } from "./render/live-view.ts";

export interface InterruptControl extends OtherWriter {
  readonly wasStopped: boolean;
  readonly wasLeft: boolean;
  /** Settles when no question is open. */
  answered(): Promise<void>;
  release(): void;
}

/**
 * Ctrl+C while a run is watched: on a terminal it asks once whether to stop the run, leave it going, or continue watching; where
 * nobody can answer (no terminal, SIGTERM) it stops the run. A second Ctrl+C at the question stops. Agents get no signal
 * from the terminal: they are children of the engine, and the supervisor has a session of its own.
 */
export function askOnInterrupt(context: CliContext, run: RunHandle): InterruptControl {
  const canAsk = context.stdin.isTTY === true && context.stderr.isTTY === true;
  let wasStopped = false;
  let wasLeft = false;
  let question: Promise<void> | null = null;
  let writes = 0;

  const stop = (): void => {
    if (wasStopped) return;
    wasStopped = true;
    writes += 1;
    context.stderr.write("stopping the run …\n");
    run
      .cancel()
      .catch(() => undefined /* it has settled already, or the supervisor is gone and the watcher says so */);
  };
  const ask = async (): Promise<void> => {
    const lines = createInterface({ input: context.stdin, output: context.stderr });
    const interrupted = new Promise<string>((resolve) => lines.once("SIGINT", () => resolve("s")));
    try {
      for (;;) {
        writes += 1;
        const asked = lines.question("\nstop the run, leave it running, or continue watching? [s/l/c] ");
        const answer = (await Promise.race([asked, interrupted])).trim().toLowerCase();
        if (answer.startsWith("s")) return stop();
        if (answer.startsWith("l")) {
          wasLeft = true;
          run.detach();
          return undefined;
        }
        if (answer.startsWith("c")) return undefined;
      }
    } finally {
      lines.close();
    }
  };
  const onInterrupt = (): void => {
    if (!canAsk || wasStopped) stop();
    else {
      question ??= ask().finally(() => {
        question = null;
      });
    }
  };
  process.on("SIGINT", onInterrupt);
  process.on("SIGTERM", stop);
  return {
    get isOpen() {
      return question !== null;
    },
    get writes() {
      return writes;
    },
    get wasStopped() {
      return wasStopped;
    },
    get wasLeft() {
      return wasLeft;
    },
    async answered() {
      await question;
    },
    release() {
      process.off("SIGINT", onInterrupt);
      process.off("SIGTERM", stop);
    },
  };
}
