/**
 * Theory of operation. One attempt goes through: snapshot → workspace → door → create → start → wait → remove → read the patch →
 * release. Each step that makes something pushes its undoing on a stack; whatever happens, the stack is unwound, and one failing
 * undo does not keep the others from running. The outcome is told as soon as the patch is known; the undoing of what is left
 * goes on behind it (`released`), off the critical path of dependents.
 *
 * Trust: everything the container wrote is read only after the container is gone, by `Workspace.readPatch`.
 */
import type { AttemptPhase } from "../model/failure.ts";
import type { RunningSandbox } from "../sandbox/sandbox.ts";
import { attemptDir, outputLogPath } from "../util/state-layout.ts";
import { readOwnExclude } from "../workspace/own-exclude.ts";
import { openAttemptDoor } from "./attempt-door.ts";
import { AttemptFailed, stopFailure, toFailure } from "./attempt-failure.ts";
import { makePrivateDir } from "./attempt-files.ts";
import { collectResult } from "./collect-result.ts";
import { judgeDisk, openDiskNote, prepareDiskWatch } from "./disk-watch.ts";
import type { AttemptListener, AttemptRequest, AttemptResult } from "./executor.ts";
import type { Control, LocalExecutorDeps, UndoStep } from "./executor-deps.ts";
import { attemptLabels, buildSandboxSpec } from "./sandbox-spec.ts";

/** How long a stopped attempt may take to end by itself after SIGTERM before everything in it is killed. */
const TERMINATE_GRACE_MS = 3_000;

/** Runs the steps of one attempt in order. Throws AttemptFailed; what was made so far is on `undo` then. */
export async function runAttempt(
  deps: LocalExecutorDeps,
  request: AttemptRequest,
  listener: AttemptListener,
  control: Control,
  undo: UndoStep[],
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
  return collectResult(deps, request, control, workspace, ended, () => created.remove());
}

/** Known before anything has run, unlike the caps that only the kernel can tell of (`strict` of `CreatedSandbox.start`). */
function refuseOpenDisk(requested: number | null, note: string): void {
  if (requested === null) return;
  const caps = [{ cap: "disk", requested, actual: null, state: "not-enforced", note }] as const;
  throw new AttemptFailed({ reason: "caps-not-enforced", fault: "host", caps });
}

/** SIGTERM, and after a grace SIGKILL to everything inside. */
export function endGracefully(running: RunningSandbox, because: "timeout" | "cancelled"): void {
  const timer = setTimeout(() => void running.kill(because), TERMINATE_GRACE_MS);
  void running.ended.then(() => clearTimeout(timer));
  running.terminate().catch(() => running.kill(because));
}

/** First line of the commit; the importer adds the trailers that lead back to the attempt. */
function commitMessage(request: AttemptRequest): string {
  const { task } = request;
  return (task.title || task.id).split("\n", 1)[0]?.slice(0, 100) ?? task.id;
}
