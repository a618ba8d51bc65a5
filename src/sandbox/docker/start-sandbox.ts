/** attach → start → read the caps back: the narrow part where a container becomes a running sandbox. */
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Container, ContainerInspectInfo } from "dockerode";
import type { Failure } from "../../model/failure.ts";
import { unenforcedCaps } from "../../policy/caps.ts";
import { err, ok, type Result } from "../../util/result.ts";
import type { OutputSink, RunningSandbox, SandboxSpec } from "../sandbox.ts";
import type { BlockDevice } from "./block-device.ts";
import { type CgroupDirs, cgroupsOfContainer, readHostOomKills, readKernelFile } from "./cgroup-files.ts";
import { isCommandMissing } from "./command-lookup.ts";
import { holdScratchSpaces } from "./disk-space.ts";
import { isUnreachable, messageOf, statusOf } from "./engine-client.ts";
import type { EngineContext } from "./engine-context.ts";
import type { ExitTicket } from "./exit-watch.ts";
import { pumpOutput } from "./output-pump.ts";
import { findInitPid, type OwnGroup } from "./own-group.ts";
import { readGroupCaps } from "./read-caps.ts";
import { reportCaps } from "./report-caps.ts";
import { superviseSandbox } from "./running-sandbox.ts";
import { createUsageMeter } from "./usage-meter.ts";

/** Where the caps of a container are kept beside the engine. */
export interface Placement {
  readonly ownGroup: OwnGroup | null;
  readonly device: BlockDevice | null;
}

const LOOK_AGAIN_MS = 250;
/** A process that is gone has been reported as an end within this time, or the engine is in trouble. */
const END_REPORTED_MS = 1_000;

export interface StartParts {
  readonly container: Container;
  readonly placement: Placement;
  readonly sink: OutputSink;
  /** Set in strict mode: stops and removes a container whose caps are not enforced. */
  readonly refuse: (() => Promise<void>) | null;
}

export async function startSandbox(
  context: EngineContext,
  spec: SandboxSpec,
  parts: StartParts,
): Promise<Result<RunningSandbox, Failure>> {
  const { container, placement } = parts;
  const ticket = context.exits.watch(container.id);
  let stream: Readable | null = null;
  let isRunning = false;
  try {
    // Attached before the start: what a container prints in its first millisecond is gone otherwise.
    stream = (await context.client.call("attach", () =>
      container.attach({ stream: true, stdout: true, stderr: true, hijack: true }),
    )) as unknown as Readable;
    const pump = pumpOutput(stream, parts.sink);
    const startedAtMs = performance.now();
    const hostOomKills = context.sharesHost ? readHostOomKills() : null;
    try {
      await context.gate.use(() => context.client.call("start container", () => container.start()));
    } catch (error) {
      const failure = await startFailure(context, spec, container, error);
      if (failure !== null) return err(failure);
    }
    const seen = await findProcess(context, parts, ticket);
    const meter = createUsageMeter(seen.dirs, placement.ownGroup?.inner ?? null, spec.caps);
    const scratch = await holdScratchSpaces(context, spec, seen.pid);
    const caps = await reportCaps(context, spec, seen);
    if (parts.refuse !== null && !seen.hasEnded && unenforcedCaps(caps).length > 0) {
      meter.finish();
      await scratch.release();
      await parts.refuse();
      return err({ reason: "caps-not-enforced", fault: "host", caps });
    }
    isRunning = true;
    return ok(
      superviseSandbox(context, spec, {
        container,
        ticket,
        pump,
        meter,
        scratch,
        hostOomKills,
        caps,
        startedAtMs,
        pid: seen.pid,
      }),
    );
  } catch (error) {
    if (isUnreachable(error)) {
      return err({ reason: "engine-lost", fault: "host", phase: "start", message: messageOf(error) });
    }
    if (statusOf(error) === null) throw error;
    return err({ reason: "host-error", fault: "host", phase: "start", message: messageOf(error) });
  } finally {
    if (!isRunning) {
      ticket.release();
      stream?.destroy();
    }
  }
}

interface SeenProcess {
  readonly pid: number | null;
  readonly dirs: CgroupDirs | null;
  readonly group: ReturnType<typeof readGroupCaps> | null;
  readonly hasEnded: boolean;
}

/**
 * Finds the container's first process and group, and reads the group at once: a short container is gone in some 20 ms.
 * Under a group of our own no question to the engine is needed, its place is known.
 */
async function findProcess(
  context: EngineContext,
  parts: StartParts,
  ticket: ExitTicket,
): Promise<SeenProcess> {
  const { container, placement } = parts;
  const above = placement.ownGroup?.outer ?? null;
  const look = (dirs: CgroupDirs | null) =>
    dirs === null ? null : readGroupCaps(dirs, above, placement.device);
  const own = placement.ownGroup?.findContainer(container.id) ?? null;
  const group = look(own);
  const init = own === null ? null : findInitPid(own);
  if (init !== null) return { pid: init, dirs: own, group, hasEnded: false };
  const state = await inspectState(context, container);
  if (state === null) return { pid: null, dirs: own, group, hasEnded: false };
  if (!state.Running) return { pid: null, dirs: own, group, hasEnded: true };
  const dirs = cgroupsOfContainer(state.Pid, container.id, context.hierarchies);
  if (dirs !== null) return { pid: state.Pid, dirs, group: look(dirs), hasEnded: false };
  if (!context.sharesHost || readKernelFile(`/proc/${state.Pid}/status`) !== null) {
    return { pid: null, dirs: own, group, hasEnded: false };
  }
  // The process is gone and the engine has not noticed yet. Only its own word makes it an end.
  const abort = new AbortController();
  await Promise.race([
    ticket.signal,
    delay(END_REPORTED_MS, null, { signal: abort.signal }).catch(() => null),
  ]);
  abort.abort();
  const after = await inspectState(context, container);
  return { pid: null, dirs: own, group, hasEnded: after !== null && !after.Running };
}

/** Null where the container runs all the same: only the answer got lost. */
async function startFailure(
  context: EngineContext,
  spec: SandboxSpec,
  container: Container,
  error: unknown,
): Promise<Failure | null> {
  if (isUnreachable(error)) {
    const lost: Failure = { reason: "engine-lost", fault: "host", phase: "start", message: messageOf(error) };
    const deadlineMs = performance.now() + context.lostAfterMs;
    while (performance.now() < deadlineMs) {
      const state = await inspectState(context, container);
      if (state !== null) return state.Status === "created" ? lost : null;
      await delay(LOOK_AGAIN_MS);
    }
    return lost;
  }
  if (statusOf(error) === null) throw error;
  // Engines without an init answer the start itself with an error when the command is not there.
  if (statusOf(error) !== 409 && (await isCommandMissing(context, spec))) {
    return { reason: "command-not-found", fault: "task", command: spec.argv[0] ?? "", exitCode: 127 };
  }
  return { reason: "host-error", fault: "host", phase: "start", message: messageOf(error) };
}

/** Null where the engine does not answer. */
async function inspectState(
  context: EngineContext,
  container: Container,
): Promise<ContainerInspectInfo["State"] | null> {
  try {
    return (await context.client.call("inspect container", () => container.inspect())).State;
  } catch (error) {
    if (isUnreachable(error)) return null;
    throw error;
  }
}
