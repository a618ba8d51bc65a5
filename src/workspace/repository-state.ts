/**
 * Looks at the person's repository. Read only: no lock is taken, no index rewritten, and nothing that its config names is run.
 *
 * Unlike everything else here this git sees the person's own and the system's config, since only there can they have allowed a
 * repository of another owner (`safe.directory`). Filters are switched off one by one, by name, because `status` runs them.
 */
import { lstat, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RunnerError } from "../model/runner-error.ts";
import { gitFailed } from "./git.ts";
import { inRepository, onePath, type RepositoryLocation } from "./in-repository.ts";
import { readWarnings } from "./repository-warnings.ts";
import type { RepositoryState } from "./workspace.ts";

/** Reads what a run needs to know of the repository that holds `path`. Throws `not-a-repository` or `repository-refused`. */
export async function readRepositoryState(path: string): Promise<RepositoryState> {
  const location = await locateRepository(path);
  const { top } = location;
  const [headCommit, ref, config] = await Promise.all([readHead(top), readRef(top), readConfig(top)]);
  const [dirty, warnings] = await Promise.all([
    readDirty(top, config),
    readWarnings(location, headCommit, config),
  ]);
  return { path: top, headCommit, ref, objectFormat: location.objectFormat, dirty, warnings };
}

/** Finds the repository that holds `path`, from any directory of any of its work trees. */
export async function locateRepository(path: string): Promise<RepositoryLocation> {
  const directory = await realDirectory(path);
  const first = await inRepository(directory, [
    "-c",
    "safe.bareRepository=all",
    "rev-parse",
    "--is-bare-repository",
    "--is-inside-work-tree",
    "--show-object-format",
  ]);
  if (first.exitCode !== 0) throw await whyNoRepository(directory, first.stderr);
  const [bare, inside, format] = first.stdout.toString("utf8").split("\n");
  if (inside !== "true") {
    const what = bare === "true" ? "is a bare repository" : "is inside a git directory";
    throw new RunnerError("not-a-repository", `${directory} ${what}: there is no work tree to start from`, {
      data: { path: directory, bare: bare === "true" },
      hint: "Name a checked-out work tree; `git worktree add` makes one from a bare repository.",
    });
  }
  if (format !== "sha1" && format !== "sha256") {
    throw new RunnerError("repository-refused", `${directory} uses the unknown object format ${format}`);
  }
  const [top, commonDir] = await Promise.all([
    onePath(directory, ["rev-parse", "--show-toplevel"]),
    onePath(directory, ["rev-parse", "--path-format=absolute", "--git-common-dir"]),
  ]);
  return { top, commonDir: await realpath(commonDir), objectFormat: format };
}

async function realDirectory(path: string): Promise<string> {
  try {
    const real = await realpath(path);
    return (await stat(real)).isDirectory() ? real : dirname(real);
  } catch (cause) {
    throw new RunnerError("not-a-repository", `${path} cannot be read`, { cause, data: { path } });
  }
}

/** git tells its refusals apart in words only, so the reason is looked up on disk: whose is the directory above us? */
async function whyNoRepository(directory: string, stderr: string): Promise<RunnerError> {
  const uid = process.geteuid?.() ?? 0;
  for (let at = directory; ; at = dirname(at)) {
    for (const candidate of [join(at, ".git"), at]) {
      const owners = await repositoryOwners(at, candidate);
      const other = owners?.find((owner) => owner !== uid);
      if (other !== undefined) {
        return new RunnerError(
          "repository-refused",
          `${at} belongs to uid ${other}, bulkhead runs as uid ${uid}: git refuses repositories of another owner`,
          {
            data: { path: at, ownerUid: other, uid },
            hint: `If you trust it: git config --global --add safe.directory ${at}`,
          },
        );
      }
      if (owners) {
        return new RunnerError("repository-refused", `git refuses the repository ${at}: ${stderr.trim()}`, {
          data: { path: at, stderr },
        });
      }
    }
    if (at === dirname(at)) break;
  }
  return new RunnerError("not-a-repository", `${directory} is not in a git repository`, {
    data: { path: directory },
    hint: "Run bulkhead inside a repository, or name one with --repo.",
  });
}

/** Owners of what git checks, or null where `candidate` is no git directory (or a `.git` file of a linked work tree). */
async function repositoryOwners(top: string, candidate: string): Promise<number[] | null> {
  try {
    const git = await lstat(candidate);
    if (git.isDirectory())
      await Promise.all([lstat(join(candidate, "HEAD")), lstat(join(candidate, "objects"))]);
    else if (candidate === top) return null;
    return [git.uid, (await lstat(top)).uid];
  } catch {
    // Not there or not readable: no repository that we could name.
    return null;
  }
}

async function readHead(top: string): Promise<string> {
  const output = await inRepository(top, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
  if (output.exitCode !== 0) {
    throw new RunnerError("repository-refused", `${top} has no commit yet: HEAD points at an unborn branch`, {
      data: { path: top, unborn: true },
      hint: "Make a first commit; attempts start from a commit.",
    });
  }
  return output.stdout.toString("utf8").trim();
}

/** Short name of the branch that HEAD is on, or null where it is detached. */
async function readRef(top: string): Promise<string | null> {
  const output = await inRepository(top, ["symbolic-ref", "--quiet", "HEAD"]);
  if (output.exitCode !== 0) return null;
  return output.stdout
    .toString("utf8")
    .trim()
    .replace(/^refs\/heads\//, "");
}

/** The repository's effective config, lower-cased keys (git's own rule for all but the middle part). */
export async function readConfig(top: string): Promise<ReadonlyMap<string, string>> {
  const output = await inRepository(top, ["config", "--list", "-z"]);
  const entries = output.stdout
    .toString("utf8")
    .split("\0")
    .filter((entry) => entry !== "")
    .map((entry): [string, string] => {
      const cut = entry.indexOf("\n");
      return cut === -1 ? [entry, "true"] : [entry.slice(0, cut), entry.slice(cut + 1)];
    });
  return new Map(entries);
}

/**
 * Whether tracked files differ from HEAD. With filters off a file that a filter stores differently can show as changed
 * although it is not, if its time stamp moved; this only feeds a notice.
 */
async function readDirty(top: string, config: ReadonlyMap<string, string>): Promise<boolean> {
  const args = ["status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all"];
  const output = await inRepository(top, [...filtersOff(config), ...args]);
  if (output.exitCode !== 0) throw gitFailed(args, output, null);
  return output.stdout.length > 0;
}

/** Switches off, one by one, the filter drivers that the effective config names. */
export function filtersOff(config: ReadonlyMap<string, string>): string[] {
  const drivers = new Set<string>();
  for (const key of config.keys()) {
    const match = /^filter\.(.+)\.(?:clean|smudge|process|required)$/s.exec(key);
    if (match?.[1] !== undefined) drivers.add(match[1]);
  }
  return [...drivers].flatMap((name) =>
    ["clean=", "smudge=", "process=", "required=false"].flatMap((tail) => ["-c", `filter.${name}.${tail}`]),
  );
}
