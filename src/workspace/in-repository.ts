/**
 * Git in the person's own repository, with their own config in sight (repository-state.ts says why). For reading only.
 */
import { type GitOptions, type GitOutput, gitEnvironment, gitFailed, runGit } from "./git.ts";

/** Where a repository keeps what its work trees share, and in which hash. */
export interface RepositoryLocation {
  /** Top level of the work tree. */
  readonly top: string;
  /** The common git directory: one for all linked work trees. */
  readonly commonDir: string;
  readonly objectFormat: "sha1" | "sha256";
}

/** Runs git in a repository of the person. */
export function inRepository(
  directory: string,
  args: readonly string[],
  options: GitOptions = {},
): Promise<GitOutput> {
  return runGit(null, ["-C", directory, ...args], { ...options, environment: personalEnvironment() });
}

/** The scrubbed environment with the person's own config back in reach. GIT_DIR and the like stay out: `path` decides. */
export function personalEnvironment(): Record<string, string> {
  const { GIT_CONFIG_NOSYSTEM: _system, GIT_CONFIG_GLOBAL: _global, ...environment } = gitEnvironment();
  // Under sudo git takes the caller's own repositories for its own, going by SUDO_UID.
  for (const name of ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "SUDO_UID"]) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return { ...environment, GIT_NO_LAZY_FETCH: "1" };
}

/** One path per call: a path may hold a newline, so it cannot share its output with another answer. */
export async function onePath(directory: string, args: readonly string[]): Promise<string> {
  const output = await inRepository(directory, args);
  if (output.exitCode !== 0) throw gitFailed(args, output, null);
  return output.stdout.toString("utf8").replace(/\n$/, "");
}
