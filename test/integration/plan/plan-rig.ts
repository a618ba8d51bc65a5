import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import type { TaskSpec } from "../../../src/model/task.ts";
import { loadPlan } from "../../../src/plan/load-plan.ts";
import { formatProblem } from "../../../src/plan/plan-problem.ts";
import { DEFAULT_CONFIG, type ProjectConfig } from "../../../src/plan/project-config.ts";

/** A folder with files, and plans loaded from it. */
export interface PlanRig {
  readonly root: string;
  write(path: string, content: string | Uint8Array): void;
  /** Loads and expects success. */
  load(
    inputs: readonly string[],
    options?: LoadOptions,
  ): Promise<{ tasks: readonly TaskSpec[]; sources: readonly string[] }>;
  /** Loads and expects refusal; the sentences. */
  refuse(inputs: readonly string[], options?: LoadOptions): Promise<readonly string[]>;
  dispose(): void;
}

export interface LoadOptions {
  readonly config?: ProjectConfig;
  readonly stdin?: string | Uint8Array;
}

export function createPlanRig(): PlanRig {
  const root = mkdtempSync(join(tmpdir(), "bh-plan-"));
  const run = (inputs: readonly string[], { config = DEFAULT_CONFIG, stdin }: LoadOptions) =>
    loadPlan({
      inputs,
      cwd: root,
      config,
      ...(stdin === undefined ? {} : { stdin: Readable.from([Buffer.from(stdin)]) }),
    });
  return {
    root,
    write(path, content) {
      const target = join(root, path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, content);
    },
    async load(inputs, options = {}) {
      const loaded = await run(inputs, options);
      if (!loaded.ok) throw new Error(loaded.error.map(formatProblem).join("\n"));
      return { tasks: loaded.value.plan.tasks, sources: loaded.value.sources };
    },
    async refuse(inputs, options = {}) {
      const loaded = await run(inputs, options);
      if (loaded.ok) throw new Error("the plan was not refused");
      return loaded.error.map(formatProblem);
    },
    dispose: () => rmSync(root, { recursive: true, force: true }),
  };
}
