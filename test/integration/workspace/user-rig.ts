/** A person's repository and one task run on it through the built command line, in a real container. */
import { join } from "node:path";
import type { RunViewJson, TaskViewJson } from "../../../src/observe/run-view-json.ts";
import type { Rig } from "../../support/bulkhead-cli.ts";
import { outputOf, SMALL, statusOf, taskOf, writePlan } from "../../support/e2e-rig.ts";
import { bash } from "../../support/temporary-repository.ts";

export interface Ran {
  readonly code: number | null;
  readonly stderr: string;
  readonly status: RunViewJson;
  readonly task: TaskViewJson;
  /** What the task printed. */
  readonly output: string;
  /** Lines of the patch that say something: files, modes, removed and added lines. */
  readonly patch: readonly string[];
}

export interface TaskShape {
  readonly run: string;
  readonly files?: object;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Makes the repository `name` in the rig by a script; its first commit is what the script leaves, unless it made one. */
export function makeRepository(rig: Rig, name: string, setup: string, objectFormat = "sha1"): string {
  const path = join(rig.root, name);
  bash(
    rig.root,
    `git init -q -b main --object-format=${objectFormat} '${path}'; cd '${path}'; ${setup}
git rev-parse -q --verify HEAD > /dev/null || { git add -A; git commit -q --allow-empty -m first; }`,
    // Local clones as submodules: git asks for leave since they became a way of attack.
    { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "protocol.file.allow", GIT_CONFIG_VALUE_0: "always" },
  );
  return path;
}

/** Runs one task called `t` and tells everything about it. */
export async function runTask(rig: Rig, repository: string, shape: TaskShape): Promise<Ran> {
  const task = { id: "t", run: `set -eu\n${shape.run}`, ...(shape.files ? { files: shape.files } : {}) };
  const plan = writePlan(rig, { defaults: { ...SMALL, retries: 0 }, tasks: [task] });
  const { code, stderr } = await rig.run(["run", plan, ...(shape.args ?? [])], {
    cwd: repository,
    ...(shape.env ? { env: shape.env } : {}),
  });
  const status = await statusOf(rig);
  const shown = taskOf(status, "t");
  const patch = shown.patch === null ? "" : (await rig.run(["diff", "latest", "t"])).stdout;
  const telling = /^(?:diff |(?:old|new|deleted file|new file) mode |[-+](?![-+]))/;
  return {
    code,
    stderr,
    status,
    task: shown,
    output: await outputOf(rig, "t"),
    patch: patch.split("\n").filter((line) => telling.test(line)),
  };
}

/** Every file of a repository with its git directory: name, kind, mode, size, time, content. Equal before and after where nothing was written. */
export function fingerprint(path: string): string {
  return bash(
    path,
    "find . -printf '%p %y %m %s %T@ %l\\n' | sort | sha256sum; find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum",
  );
}
