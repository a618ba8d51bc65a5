/**
 * Theory of operation. One attempt goes through: snapshot → workspace ∥ door → create → start → wait → remove → read the patch →
 * release. Each step that makes something pushes its undoing on a stack; whatever happens, the stack is unwound, and one failing
 * undo does not keep the others from running. The outcome is told as soon as the patch is known; the undoing of what is left
 * goes on behind it (`released`), off the critical path of dependents.
 *
 * Trust: everything the container wrote is read only after the container is gone, by `Workspace.readPatch`.
 */
import { mkdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { CallerBus } from "../bus/bus.ts";
import type { OpenDoor } from "../door/door.ts";
import type { AttemptPhase, Failure } from "../model/failure.ts";
import type { AttemptKey } from "../model/ids.ts";
import { formatAttempt } from "../model/ids.ts";
import type { Patch } from "../model/patch.ts";
import { DEFAULT_RESULT_LIMITS, type RunSettings } from "../model/run.ts";
import { RunnerError } from "../model/runner-error.ts";
import type { Engine, EngineInfo, RunningSandbox, SandboxExit } from "../sandbox/sandbox.ts";
import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import { attemptDir, outputLogPath } from "../util/state-layout.ts";
import { readOwnExclude } from "../workspace/own-exclude.ts";
import { findPatchRisks } from "../workspace/scan-risks.ts";
import { findPatchSecrets } from "../workspace/scan-secrets.ts";
import type { ObjectStore, Workspace, WorkspaceDriver } from "../workspace/workspace.ts";
import { type AttemptFiles, makePrivateDir, writeAttemptFiles } from "./attempt-files.ts";
import { judgeDisk, openDiskNote, prepareDiskWatch } from "./disk-watch.ts";
import type { AttemptHandle, AttemptListener, AttemptRequest, AttemptResult, Executor } from "./executor.ts";
import { linkManifest } from "./link-manifest.ts";
import type { Repositories } from "./repositories.ts";
import { attemptLabels, buildSandboxSpec } from "./sandbox-spec.ts";
import { createSweep } from "./sweep.ts";

/** Bounded, redacted output of one attempt: to disk, and line-ready text to whoever watches. */
export interface OutputPort {
  write(stream: "stdout" | "stderr", bytes: Buffer): void | Promise<void>;
  close(): Promise<void>;
}

export interface LocalExecutorDeps {
  readonly stateDir: string;
  readonly stateId: string;
  readonly cacheDir: string;
  readonly engine: Engine;
  readonly engineInfo: EngineInfo;
  readonly repositories: Repositories;
  /** The driver for a run: forced by its settings or chosen by a probe. Throws RunnerError where a forced one cannot serve. */
  driverFor(settings: RunSettings, store: ObjectStore, image: string): Promise<ChosenDriver>;
  readonly openDoor: OpenDoor;
  busFor(key: AttemptKey, context: () => unknown): CallerBus;
  openOutput(
    path: string,
    secrets: readonly string[],
    onText: AttemptListener["output"],
  ): Promise<OutputPort>;
  readonly toolboxDir: string;
  readonly hostsFile: string;
  /** A fresh name for a door directory, 12 hex digits. */
  newDoorId(): string;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface ChosenDriver {
  readonly driver: WorkspaceDriver;
  /** Why the faster driver does not serve here; null where it does, or the person chose. */
  readonly note: string | null;
}

interface Control {
  because: "timeout" | "cancelled" | null;
  running: RunningSandbox | null;
}

class AttemptFailed extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.reason);
    this.failure = failure;
  }
}

/** How long a stopped attempt may take to end by itself after SIGTERM before everything in it is killed. */
const TERMINATE_GRACE_MS = 3_000;

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
  const undo: Array<{ what: string; run: () => Promise<void> }> = [];
  const done = perform(deps, request, listener, control, undo).catch((error: unknown): AttemptResult => {
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

async function perform(
  deps: LocalExecutorDeps,
  request: AttemptRequest,
  listener: AttemptListener,
  control: Control,
  undo: Array<{ what: string; run: () => Promise<void> }>,
): Promise<AttemptResult> {
  const { key, task, settings } = request;
  const beganMs = deps.clock.nowMs();
  const phase = async <T>(name: AttemptPhase, work: () => Promise<T>): Promise<T> => {
    if (control.because !== null) throw new AttemptFailed(stopFailure(control.because, task.timeoutMs));
    try {
      return await work();
    } catch (error) {
      throw error instanceof AttemptFailed ? error : new AttemptFailed(toFailure(error, name));
    }
  };

  const image = await phase("create", async () => {
    const found = await deps.engine.inspectImage(task.image);
    if (!found) throw new AttemptFailed({ reason: "image-missing", fault: "host", image: task.image });
    return found;
  });
  const { workspace, snapshot } = await phase("snapshot", async () => {
    const store = await deps.repositories.ready(settings, task.files.history);
    const made = await store.snapshot({
      baseCommit: settings.baseCommit,
      parents: request.parents,
      filter: task.files,
      repository: settings.repository,
      runId: key.runId,
    });
    if (!made.ok) throw new AttemptFailed(made.error);
    const dir = attemptDir(deps.stateDir, key);
    await makePrivateDir(dir);
    const { driver, note } = await deps.driverFor(settings, store, image.id);
    if (note !== null) listener.warning(note);
    for (const warning of made.value.warnings ?? []) listener.warning(warning);
    const opened = await driver.open({
      key,
      snapshot: made.value,
      attemptDir: dir,
      labels: attemptLabels(deps.stateId, key),
      image: image.id,
      diskBytes: task.caps.diskBytes,
      message: commitMessage(request),
      exclude: await readOwnExclude(settings.repository),
    });
    undo.push({ what: "the workspace", run: () => opened.release() });
    return { workspace: opened, snapshot: made.value };
  });
  listener.prepared({
    driver: workspace.driver,
    head: snapshot.commit,
    tookMs: deps.clock.nowMs() - beganMs,
  });

  if (task.capsMode === "strict" && workspace.diskCap !== "hard")
    refuseOpenDisk(task.caps.diskBytes, openDiskNote(workspace));

  const { doorDir, files } = await phase("door", () =>
    openAttemptDoor(deps, request, snapshot, image.id, beganMs, undo),
  );
  const output = await deps.openOutput(outputLogPath(deps.stateDir, key), request.secrets, listener.output);
  undo.push({ what: "the output log", run: () => output.close() });

  const watch = await phase("create", () => prepareDiskWatch(deps.engine, workspace, task.caps.diskBytes));
  const created = await phase("create", async () => {
    const made = await deps.engine.create(
      buildSandboxSpec(request, {
        stateId: deps.stateId,
        volume: workspace.volume,
        devicePath: workspace.devicePath,
        diskCap: workspace.diskCap ?? "none",
        ...(watch === null ? {} : { diskNote: watch.note }),
        doorDir,
        toolboxDir: deps.toolboxDir,
        hostsFile: deps.hostsFile,
        imageId: image.id,
      }),
    );
    if (!made.ok) throw new AttemptFailed(made.error);
    undo.push({ what: "the container", run: () => made.value.remove() });
    return made.value;
  });
  const running = await phase("start", async () => {
    const started = await created.start((chunk) => output.write(chunk.stream, chunk.bytes), {
      strict: task.capsMode === "strict",
    });
    if (!started.ok) throw new AttemptFailed(started.error);
    return started.value;
  });
  control.running = running;
  listener.started({ containerId: running.id, caps: running.caps, tookMs: deps.clock.nowMs() - beganMs });
  if (control.because !== null) endGracefully(running, control.because);
  void files.writeMetadata(running.caps).catch(() => undefined /* the door is being closed already */);

  const diskWatch = watch?.start(() => void running.kill("disk-full"));
  const exit = await running.ended;
  control.running = null;
  // Whoever reads the log after `attempt-ended` finds all of it.
  await output.close();
  const ended = await judgeDisk(exit, diskWatch, task.caps.diskBytes);
  return collect(deps, request, control, workspace, ended, () => created.remove());
}

/** Known before anything has run, unlike the caps that only the kernel can tell of (`strict` of `CreatedSandbox.start`). */
function refuseOpenDisk(requested: number | null, note: string): void {
  if (requested === null) return;
  const caps = [{ cap: "disk", requested, actual: null, state: "not-enforced", note }] as const;
  throw new AttemptFailed({ reason: "caps-not-enforced", fault: "host", caps });
}

async function collect(
  deps: LocalExecutorDeps,
  request: AttemptRequest,
  control: Control,
  workspace: Workspace,
  exit: SandboxExit,
  remove: () => Promise<void>,
): Promise<AttemptResult> {
  const rest = { use: exit.use, mainMs: exit.mainMs };
  if (control.because !== null) {
    const failure = stopFailure(control.because, request.task.timeoutMs);
    return { outcome: { status: "failed", failure }, ...rest };
  }
  if (exit.failure) return { outcome: { status: "failed", failure: exit.failure }, ...rest };
  try {
    // The engine lets go of the volume when the container is gone; only then is the tree at rest.
    await remove();
    const patch = await workspace.readPatch(DEFAULT_RESULT_LIMITS);
    if (!patch.ok) return { outcome: { status: "failed", failure: patch.error }, ...rest };
    return {
      outcome: { status: "submitted", patch: await flagPatch(deps, request, patch.value) },
      ...rest,
    };
  } catch (error) {
    deps.logger.error({ attempt: formatAttempt(request.key), error: String(error) }, "collecting failed");
    return { outcome: { status: "failed", failure: toFailure(error, "collect") }, ...rest };
  }
}

/** The patch, with what in it a person has to agree to. It is flagged, never changed: dependents start from what the agent wrote. */
async function flagPatch(deps: LocalExecutorDeps, request: AttemptRequest, patch: Patch): Promise<Patch> {
  if (patch.empty) return patch;
  const { gitDir } = await deps.repositories.store(request.settings.repository);
  const [secrets, risks] = await Promise.all([
    findPatchSecrets(gitDir, patch, request.secrets),
    findPatchRisks(gitDir, patch, request.task.protect),
  ]);
  return {
    ...patch,
    ...(secrets.length === 0 ? {} : { secrets }),
    ...(risks.length === 0 ? {} : { risks }),
  };
}

async function openAttemptDoor(
  deps: LocalExecutorDeps,
  request: AttemptRequest,
  snapshot: { commit: string; manifestPath: string },
  imageDigest: string,
  beganMs: number,
  undo: Array<{ what: string; run: () => Promise<void> }>,
): Promise<{ doorDir: string; files: AttemptFiles }> {
  await makePrivateDir(join(deps.stateDir, "d"));
  const doorDir = join(deps.stateDir, "d", deps.newDoorId());
  // 0755: the agent's uid must pass through it inside the container; on the host its parent is private.
  await mkdir(doorDir, { mode: 0o755 });
  undo.push({ what: "the door directory", run: () => rm(doorDir, { recursive: true, force: true }) });
  const space = await statfs(deps.stateDir);
  const host = {
    imageDigest,
    cpus: deps.engineInfo.cpus,
    memoryBytes: deps.engineInfo.memoryBytes,
    diskFreeBytes: space.bavail * space.bsize,
    engine: `${deps.engineInfo.product} ${deps.engineInfo.version}`,
  };
  const files = await writeAttemptFiles(doorDir, request, snapshot.commit, host, beganMs);
  await files.writeMetadata(null);
  await linkManifest(snapshot.manifestPath, join(doorDir, "workspace_manifest.json"));
  const bus = deps.busFor(request.key, () => files.context);
  const door = await deps.openDoor({
    socketPath: join(doorDir, "door.sock"),
    mode: 0o666,
    handlers: { frame: (text) => bus.frame(text), oversize: (limit) => bus.oversize(limit) },
  });
  undo.push({ what: "the door", run: () => door.close(0) });
  return { doorDir, files };
}

function endGracefully(running: RunningSandbox, because: "timeout" | "cancelled"): void {
  const timer = setTimeout(() => void running.kill(because), TERMINATE_GRACE_MS);
  void running.ended.then(() => clearTimeout(timer));
  running.terminate().catch(() => running.kill(because));
}

function stopFailure(because: "timeout" | "cancelled", limitMs: number): Failure {
  return because === "timeout"
    ? { reason: "timeout", fault: "agent", limitMs, by: "host" }
    : { reason: "cancelled", fault: "task" };
}

function toFailure(error: unknown, phase: AttemptPhase): Failure {
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

/** First line of the commit; the importer adds the trailers that lead back to the attempt. */
function commitMessage(request: AttemptRequest): string {
  const { task } = request;
  return (task.title || task.id).split("\n", 1)[0]?.slice(0, 100) ?? task.id;
}
