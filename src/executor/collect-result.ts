import { formatAttempt } from "../model/ids.ts";
import type { Patch } from "../model/patch.ts";
import { DEFAULT_RESULT_LIMITS } from "../model/run.ts";
import type { SandboxExit } from "../sandbox/sandbox.ts";
import { findPatchRisks } from "../workspace/scan-risks.ts";
import { findPatchSecrets } from "../workspace/scan-secrets.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { stopFailure, toFailure } from "./attempt-failure.ts";
import type { AttemptRequest, AttemptResult } from "./executor.ts";
import type { Control, LocalExecutorDeps } from "./executor-deps.ts";

/** From an ended sandbox to a patch or a failure. `remove` takes the container away, which puts the tree at rest. */
export async function collectResult(
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
