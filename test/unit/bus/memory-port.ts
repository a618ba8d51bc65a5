import type { BusDenial, BusFile, BusPort } from "../../../src/bus/bus.ts";
import type { AttemptKey } from "../../../src/model/ids.ts";
import { runIdSchema, taskIdSchema } from "../../../src/model/ids.ts";

export type Told = readonly [what: string, caller: AttemptKey, ...rest: unknown[]];

/** A supervisor in memory: keeps what it is told, serves the files it was given. */
export interface MemoryPort extends BusPort {
  readonly told: Told[];
  readonly records: Array<{ method: string; requestId: unknown; tookMs: number; errorCode: number | null }>;
  readonly files: Map<string, Buffer>;
}

export function attemptKey(task: string): AttemptKey {
  return { runId: runIdSchema.parse("20260101-000000-abcdef"), taskId: taskIdSchema.parse(task), attempt: 1 };
}

export function createMemoryPort(): MemoryPort {
  const told: Told[] = [];
  const records: MemoryPort["records"] = [];
  const files = new Map<string, Buffer>();
  const tell =
    (what: string) =>
    async (caller: AttemptKey, ...rest: unknown[]) => {
      told.push([what, caller, ...rest]);
    };
  return {
    told,
    records,
    files,
    register: tell("register"),
    reportStatus: tell("status"),
    reportError: tell("error"),
    log: tell("log"),
    async getFile(caller, taskId, path): Promise<BusFile | BusDenial> {
      told.push(["getFile", caller, taskId, path]);
      const content = files.get(`${taskId}:${path}`);
      if (!content) return { ok: false, kind: "no-such-file", message: `${taskId} has no file ${path}` };
      return { ok: true, content, blob: "b1", commit: "c1", mode: "100644" };
    },
    async putArtifact(caller, { name, content }) {
      told.push(["putArtifact", caller, name, content.toString("base64")]);
      if (name === "full") return { ok: false, kind: "quota", message: "the disk quota is used up" };
      return { sha256: "s1", bytes: content.length };
    },
    context: async (caller) => ({ task: caller.taskId }),
    record(caller, call) {
      told.push(["record", caller]);
      records.push(call);
    },
  };
}
