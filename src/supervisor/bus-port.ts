import { createHash, randomBytes } from "node:crypto";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { BusPort } from "../bus/bus.ts";
import type { RunEvent } from "../model/event.ts";
import type { AttemptKey } from "../model/ids.ts";
import { redactBytes, redactText, redactValue } from "../observe/redact.ts";
import type { EventStore } from "../store/store.ts";
import { artifactsDir } from "../util/state-layout.ts";
import type { RunController } from "./run-controller.ts";

export interface BusPortDeps {
  readonly stateDir: string;
  readonly store: EventStore;
  /** The run a door belongs to, or null when it has gone. */
  run(runId: string): RunController | null;
}

const NO_SECRETS: readonly string[] = [];

/** What the bus may do, for all attempts of this supervisor: every answer is about the caller's own run. The executor adds `context`. */
export function createBusPort(deps: BusPortDeps): Omit<BusPort, "context"> {
  const secretsOf = (caller: AttemptKey): readonly string[] => deps.run(caller.runId)?.secrets ?? NO_SECRETS;
  const note = (caller: AttemptKey, event: RunEvent): void =>
    deps.store.appendSoon(caller.runId, redactValue(secretsOf(caller), event));
  const at = (caller: AttemptKey): { taskId: AttemptKey["taskId"]; attempt: number } => ({
    taskId: caller.taskId,
    attempt: caller.attempt,
  });
  return {
    async register(caller, info) {
      note(caller, { type: "agent-registered", ...at(caller), ...info });
    },
    async reportStatus(caller, status) {
      note(caller, { type: "status-reported", ...at(caller), ...status });
    },
    async reportError(caller, error) {
      if (error.fatal) deps.run(caller.runId)?.reportFatal(caller, error.message);
      note(caller, { type: "agent-error-reported", ...at(caller), ...error });
    },
    async log(caller, entry) {
      note(caller, { type: "log-reported", ...at(caller), ...entry });
    },
    async getFile(caller, taskId, path) {
      const run = deps.run(caller.runId);
      if (!run?.task(taskId))
        return { ok: false, kind: "unknown-task", message: `no task "${taskId}" in this run` };
      const isOwn = taskId === caller.taskId;
      if (!isOwn && !run.isUpstream(taskId, caller.taskId)) {
        return {
          ok: false,
          kind: "not-a-dependency",
          message: `"${taskId}" is not upstream of "${caller.taskId}": add it to depends_on to read its files`,
        };
      }
      const commit = isOwn ? run.snapshotCommit(caller) : run.submittedCommit(taskId);
      if (!commit)
        return { ok: false, kind: "not-submitted", message: `"${taskId}" has not submitted anything yet` };
      const file = await run.executor.readFile(run.settings, commit, path);
      if (!file)
        return {
          ok: false,
          kind: "no-such-file",
          message: `no regular file "${path}" in what "${taskId}" submitted`,
        };
      return { ok: true, ...file, commit };
    },
    async putArtifact(caller, artifact) {
      const secrets = secretsOf(caller);
      if (redactText(secrets, artifact.name) !== artifact.name) {
        return { ok: false, kind: "bad-name", message: "the artifact's name holds a secret: use another" };
      }
      const { content, rules } = redactBytes(secrets, artifact.content);
      const dir = artifactsDir(deps.stateDir, caller);
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const target = join(dir, artifact.name);
      // Written beside the folder, under a name of our own: no artifact can be called so, and two of one name do not meet.
      const part = `${dir}.${randomBytes(6).toString("hex")}`;
      await writeFile(part, content, { mode: 0o600 });
      await rename(part, target);
      const sha256 = createHash("sha256").update(content).digest("hex");
      const bytes = content.length;
      const redacted = rules.length === 0 ? {} : { redacted: rules };
      note(caller, {
        type: "artifact-stored",
        ...at(caller),
        name: artifact.name,
        bytes,
        sha256,
        ...redacted,
      });
      if (rules.length > 0) {
        const message = `secrets were taken out of artifact ${artifact.name}: ${rules.join(", ")}`;
        note(caller, { type: "warning-raised", taskId: caller.taskId, message });
      }
      return { sha256, bytes };
    },
    record(caller, call) {
      note(caller, { type: "bus-called", ...at(caller), ...call });
    },
  };
}
