import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { err, ok, type Result } from "../util/result.ts";
import { configSchema } from "./config-schema.ts";
import { explainIssues } from "./explain-issue.ts";
import { orList } from "./fields.ts";
import { problemOf } from "./parse-plan.ts";
import type { PlanProblem } from "./plan-problem.ts";
import { DEFAULT_CONFIG, normalizeConfig, type ProjectConfig } from "./project-config.ts";
import { formatOf, readInputFile } from "./read-input.ts";
import { parseSourceText, type SourceDocument } from "./source-text.ts";

const CONFIG_FILES = ["bulkhead.yaml", "bulkhead.yml", "bulkhead.json"] as const;

/** Reads the configuration of a repository; the defaults where it has none. A wrong one is never replaced by the defaults. */
export async function loadConfig(repoDir: string): Promise<Result<ProjectConfig, readonly PlanProblem[]>> {
  const present = await Promise.all(CONFIG_FILES.map((name) => exists(join(repoDir, name))));
  const files = CONFIG_FILES.filter((_, index) => present[index]);
  const [file, another] = files;
  if (file === undefined) return ok(DEFAULT_CONFIG);
  if (another !== undefined) {
    const message = `there is also ${another}, and only one can hold`;
    return err([
      { file, task: null, field: null, value: undefined, message, allowed: `one of ${orList(files)}` },
    ]);
  }
  const text = await readInputFile({ file, path: join(repoDir, file) });
  if (!text.ok) return err([text.error]);
  // All settings are optional: a file of comments alone is a valid one.
  if (file !== "bulkhead.json" && /^(\s*(#.*)?(\n|$))*$/.test(text.value))
    return ok(normalizeConfig({}, file));
  const parsed = parseSourceText(text.value, file, formatOf(file));
  if (!parsed.ok) return parsed;
  const [document, more] = parsed.value;
  if (document === undefined || more !== undefined) {
    const message = "holds several documents, a configuration is one";
    return err([{ file, task: null, field: null, value: undefined, message }]);
  }
  return checkConfig(document, file);
}

/** Checks a configuration given as an object. */
export function parseConfig(
  value: unknown,
  source = "<config>",
): Result<ProjectConfig, readonly PlanProblem[]> {
  return checkConfig({ value, lineOf: () => undefined }, source);
}

function checkConfig(document: SourceDocument, file: string): Result<ProjectConfig, readonly PlanProblem[]> {
  const { value, lineOf } = document;
  const parsed = configSchema.safeParse(value);
  if (!parsed.success) {
    return err(
      explainIssues(configSchema, value, parsed.error.issues).map((problem) =>
        problemOf(file, lineOf, problem),
      ),
    );
  }
  const config = normalizeConfig(parsed.data, file);
  const { agent } = config.defaults;
  if (agent !== null && !config.agents.has(agent)) {
    const names = [...config.agents.keys()];
    return err([
      problemOf(file, lineOf, {
        path: ["defaults", "agent"],
        value: agent,
        message: `${JSON.stringify(agent)} is not a defined agent`,
        allowed: names.length === 0 ? "an agent defined under agents" : orList(names),
      }),
    ]);
  }
  return ok(config);
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return false;
    throw error;
  }
}
