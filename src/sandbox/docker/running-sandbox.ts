/**
 * A started container until its end is known.
 *
 * Theory of operation. The end may be told by the `wait` request, by the event stream or by a reconcile; whichever comes
 * first leads to one inspect, which alone is believed. Then the rest of the output is drained, the counters are added
 * up, and the cause is concluded. `ended` never rejects: a bug on the way becomes a `runner-bug` failure.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Container, ContainerInspectInfo } from "dockerode";
import type { CapReport } from "../../model/caps.ts";
import type { Failure } from "../../model/failure.ts";
import type { KillCause, RunningSandbox, SandboxExit, SandboxSpec } from "../sandbox.ts";
import { cgroupsOfContainer, readHostOomKills } from "./cgroup-files.ts";
import { classifyExit } from "./classify-exit.ts";
import { isCommandMissing } from "./command-lookup.ts";
import { findFullWorkspace, type ScratchSpaces } from "./disk-space.ts";
import { isGone, isUnreachable, messageOf, statusOf } from "./engine-client.ts";
import type { EngineContext } from "./engine-context.ts";
import type { ExitTicket } from "./exit-watch.ts";
import type { OutputPump } from "./output-pump.ts";
import type { UsageMeter } from "./usage-meter.ts";

const HELD_OPEN_MS = 2_000;
const LOOK_AGAIN_MS = 200;
/** Reported where no exit code exists: the engine is lost or the container was taken away. */
const NO_EXIT_CODE = -1;

export interface StartedParts {
  readonly container: Container;
  readonly ticket: ExitTicket;
  readonly pump: OutputPump;
  readonly meter: UsageMeter;
  readonly scratch: ScratchSpaces;
  /** The host's count of kills for memory at the start; null where it is not told. */
  readonly hostOomKills: number | null;
  readonly caps: readonly CapReport[];
  readonly startedAtMs: number;
  readonly pid: number | null;
}

type State = ContainerInspectInfo["State"];
type LastState = { kind: "state"; state: State } | { kind: "removed" } | { kind: "lost"; message: string };

export function superviseSandbox(
  context: EngineContext,
  spec: SandboxSpec,
  parts: StartedParts,
): RunningSandbox {
  const { container, ticket, pump, meter } = parts;
  let isOver = false;
  let wasTerminated = false;
  let killedBecause: KillCause | null = null;
  /** Signals we asked for, answered or not. */
  const ordered: number[] = [];
  let killing: Promise<void> = Promise.resolve();

  async function finish(): Promise<SandboxExit> {
    const waiting = new AbortController();
    container.wait({ condition: "not-running", abortSignal: waiting.signal }).then(
      () => ticket.notifyEnded(),
      (error: unknown) => {
        if (isGone(error)) ticket.notifyEnded();
        else if (!waiting.signal.aborted) context.exits.doubt();
      },
    );
    const signal = await ticket.signal;
    waiting.abort();
    const last: LastState =
      signal.kind === "lost" ? signal : await lastState(context, container, context.lostAfterMs);
    const elapsedMs = performance.now() - parts.startedAtMs;
    isOver = true;
    await killing;
    const output = await pump.drain(last.kind === "state" ? HELD_OPEN_MS : 0);
    if (output.kind !== "complete") {
      context.logger.warn({ container: container.id, output }, "the output of a container is not complete");
    }
    const metered = meter.finish();
    // The kernel's count goes with the container's group where that is not watched by v2; the engine's word is left.
    const toldOfOom = Math.max(ticket.oomEvents(), last.kind === "state" && last.state.OOMKilled ? 1 : 0);
    const use = { ...metered, oomKills: Math.max(metered.oomKills ?? 0, toldOfOom) };
    if (last.kind !== "state")
      return { exitCode: NO_EXIT_CODE, failure: withoutState(last), use, mainMs: elapsedMs };
    const exitCode = last.state.ExitCode;
    const failure = classifyExit(
      {
        exitCode,
        killedBecause,
        use,
        elapsedMs,
        full:
          exitCode === 0
            ? null
            : ((await findFullWorkspace(context, spec)) ?? (await parts.scratch.findFull())),
        foreignSignals: without(ticket.signals(), ordered),
        wasHostShortOfMemory: parts.hostOomKills !== null && (readHostOomKills() ?? 0) > parts.hostOomKills,
        isCommandMissing: (exitCode === 126 || exitCode === 127) && (await isCommandMissing(context, spec)),
      },
      spec,
    );
    return { exitCode, failure, use, mainMs: mainMs(last.state) };
  }

  const ended = finish()
    .catch((error: unknown): SandboxExit => {
      context.logger.error(
        { container: container.id, error: messageOf(error) },
        "watching a container failed",
      );
      return {
        exitCode: NO_EXIT_CODE,
        failure: { reason: "runner-bug", fault: "runner", phase: "wait", message: messageOf(error) },
        use: meter.finish(),
        mainMs: performance.now() - parts.startedAtMs,
      };
    })
    .finally(() => {
      isOver = true;
      ticket.release();
      void parts.scratch.release().catch(() => undefined /* the process end closes what is left */);
    });

  /** True where the signal reached a running container; false where it had ended. Tries on while the engine is away. */
  async function send(signal: "SIGTERM" | "SIGKILL"): Promise<boolean> {
    while (!isOver) {
      ordered.push(signal === "SIGTERM" ? 15 : 9);
      try {
        await context.client.call("signal container", () => container.kill({ signal }));
        return true;
      } catch (error) {
        if (statusOf(error) === 404 || statusOf(error) === 409) return false;
        context.logger.warn(
          { container: container.id, signal, error: messageOf(error) },
          "signalling failed",
        );
        if (signalDirectly(signal)) return true;
        context.exits.doubt();
      }
      await delay(LOOK_AGAIN_MS);
    }
    return false;
  }

  /** Past an engine that fails to: its first process takes all others with it. Checked against reuse of the pid. */
  function signalDirectly(signal: "SIGTERM" | "SIGKILL"): boolean {
    if (parts.pid === null || cgroupsOfContainer(parts.pid, container.id, context.hierarchies) === null)
      return false;
    try {
      return process.kill(parts.pid, signal);
    } catch {
      // Ended in between, or not ours to signal.
      return false;
    }
  }

  return {
    id: container.id,
    caps: parts.caps,
    ended,
    sample: async () => meter.sample(),
    async terminate() {
      wasTerminated = true;
      await send("SIGTERM");
    },
    async kill(because) {
      if (isOver) return;
      meter.look();
      const done = send("SIGKILL").then((reached) => {
        // Not reached and never terminated: it ended by itself just before, and that end counts.
        if (reached || wasTerminated) killedBecause ??= because;
      });
      killing = Promise.allSettled([killing, done]).then(() => undefined);
      await done;
    },
  };
}

/** What is left of `all` when each of `taken` was taken out once. */
function without(all: readonly number[], taken: readonly number[]): readonly number[] {
  const rest = [...taken];
  return all.filter((one) => {
    const at = rest.indexOf(one);
    if (at !== -1) rest.splice(at, 1);
    return at === -1;
  });
}

function withoutState(last: Exclude<LastState, { kind: "state" }>): Failure {
  if (last.kind === "lost")
    return { reason: "engine-lost", fault: "host", phase: "wait", message: last.message };
  return {
    reason: "host-error",
    fault: "host",
    phase: "wait",
    message: "the container was removed by someone else while it ran",
  };
}

/** Asks until the engine says that the container does not run, does not know it, or stays unreachable too long. */
async function lastState(
  context: EngineContext,
  container: Container,
  lostAfterMs: number,
): Promise<LastState> {
  let awaySinceMs: number | null = null;
  for (;;) {
    try {
      const { State } = await context.client.call("inspect container", () => container.inspect());
      awaySinceMs = null;
      if (!State.Running && !State.Restarting) return { kind: "state", state: State };
    } catch (error) {
      if (isGone(error)) return { kind: "removed" };
      if (!isUnreachable(error)) throw error;
      awaySinceMs ??= performance.now();
      if (performance.now() - awaySinceMs > lostAfterMs) return { kind: "lost", message: messageOf(error) };
    }
    await delay(LOOK_AGAIN_MS);
  }
}

/** The engine's stamps of fast containers can run backwards. */
function mainMs(state: State): number {
  const span = Date.parse(state.FinishedAt) - Date.parse(state.StartedAt);
  return Number.isFinite(span) ? Math.max(0, span) : 0;
}
