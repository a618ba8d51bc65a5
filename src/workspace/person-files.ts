import { join } from "node:path";
import { inRepository } from "./in-repository.ts";

/**
 * Options that give git the person's own ignore and attribute files back, which every call of ours takes away: for the questions where
 * their answer counts (what is ignored, which line ends a file has). To be put before the subcommand, with `ENVIRONMENT_FOR_FILES`.
 */
export async function personFiles(top: string): Promise<string[]> {
  const config = process.env["XDG_CONFIG_HOME"] || join(process.env["HOME"] ?? "/nonexistent", ".config");
  const [excludes, attributes] = await Promise.all([
    fileSetting(top, "core.excludesFile", join(config, "git/ignore")),
    fileSetting(top, "core.attributesFile", join(config, "git/attributes")),
  ]);
  return ["-c", `core.excludesFile=${excludes}`, "-c", `core.attributesFile=${attributes}`];
}

/** The system's attributes too. */
export const ENVIRONMENT_FOR_FILES = { GIT_ATTR_NOSYSTEM: "0" };

async function fileSetting(top: string, key: string, fallback: string): Promise<string> {
  const output = await inRepository(top, ["config", "-z", "--type=path", "--get-all", key]);
  const values = output.stdout.toString("utf8").split("\0");
  values.pop();
  // The last one is our own, from the command line.
  return values.at(-2) ?? fallback;
}
