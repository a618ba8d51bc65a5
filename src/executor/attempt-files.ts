import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CapReport } from "../model/caps.ts";
import type { AttemptRequest } from "./executor.ts";

/** Facts about the host and image that go into `run_metadata.json` (row A5). */
export interface HostFacts {
  readonly imageDigest: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly diskFreeBytes: number;
  readonly engine: string;
}

/** What an attempt is told about itself, as files beside its door socket, read-only inside the container. */
export interface AttemptFiles {
  readonly context: unknown;
  writeMetadata(caps: readonly CapReport[] | null): Promise<void>;
}

/**
 * Writes `context.json`, `run_metadata.json` and, where the task has standard input, `stdin` into the door directory.
 * The manifest is linked there by the caller: it belongs to the snapshot. Files are replaced by rename, so a reader inside
 * never sees half of one.
 */
export async function writeAttemptFiles(
  doorDir: string,
  request: AttemptRequest,
  snapshotCommit: string,
  host: HostFacts,
  startedMs: number,
): Promise<AttemptFiles> {
  const { task, settings, key } = request;
  const context = {
    run: key.runId,
    task: task.id,
    attempt: key.attempt,
    title: task.title,
    prompt: task.prompt,
    base_commit: settings.baseCommit,
    snapshot_commit: snapshotCommit,
    parents: request.parents.map((parent) => ({ task: parent.taskId, commit: parent.commit })),
    files: task.context.files,
    acceptance: task.context.acceptance,
    prohibited: task.context.prohibited,
    notes: task.context.notes,
    protected_paths: task.protect,
    verify: task.verify,
    time_limit_ms: task.timeoutMs,
  };
  await replaceJson(join(doorDir, "context.json"), context);
  if (task.command.stdin !== null)
    await writeFile(join(doorDir, "stdin"), task.command.stdin, { mode: 0o444 });
  return {
    context,
    writeMetadata: (caps) =>
      replaceJson(join(doorDir, "run_metadata.json"), {
        run: key.runId,
        task: task.id,
        attempt: key.attempt,
        started_at: new Date(startedMs).toISOString(),
        agent: { name: task.command.agent ?? "run", argv0: task.command.argv[0] ?? "" },
        image: { name: task.image, digest: host.imageDigest },
        engine: host.engine,
        host: { cpus: host.cpus, memory_bytes: host.memoryBytes, disk_free_bytes: host.diskFreeBytes },
        caps: task.caps,
        caps_in_force: caps,
      }),
  };
}

async function replaceJson(path: string, value: unknown): Promise<void> {
  const temporary = `${path}.new`;
  await writeFile(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o444 });
  await rename(temporary, path);
}

/** Makes a private directory with all its parents (mode 0700 for those it makes). */
export async function makePrivateDir(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
}
