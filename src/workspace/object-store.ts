/**
 * Bulkhead's own bare object store for one repository: base commits come in from the person's repository, patches from attempts.
 *
 * Theory of operation: the store lies in the cache directory under a hash of the repository's common git directory, so all
 * linked work trees share one. It is made in a temporary place and moved where it belongs, so any number of processes may open
 * it at once. Objects come in by `fetch`, whose other end reads the person's repository and writes nothing there; fetches into one
 * store exclude each other (git's own `shallow.lock` would make the second fail). Its config names no driver, hook or remote, and its
 * attributes switch off every conversion: bytes stay what they are in the commit.
 */
import { createHash } from "node:crypto";
import { access, chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { RunnerError } from "../model/runner-error.ts";
import { createSemaphore } from "../util/semaphore.ts";
import { objectStorePath } from "../util/state-layout.ts";
import { withFileLock } from "./file-lock.ts";
import { gitBytes, gitFailed, gitText, runGit } from "./git.ts";
import { removeTree } from "./remove-tree.ts";
import { locateRepository } from "./repository-state.ts";
import { createSnapshots } from "./snapshot.ts";
import { commitWorkTree, readBelow } from "./work-tree-commit.ts";
import type { ObjectStore } from "./workspace.ts";

/** Unsets everything by which git would change bytes or run a driver. Of the container's git: the same less `diff` and `merge`. */
export const NEUTRAL_ATTRIBUTES = "* !text !eol !ident !working-tree-encoding !filter !diff !merge\n";

/** Objects as old tools wrote them: harmless, and no reason to refuse a repository. */
const TOLERATED = [
  "badDate",
  "badDateOverflow",
  "badEmail",
  "badFilemode",
  "badName",
  "badTimezone",
  "extraHeaderEntry",
  "missingEmail",
  "missingNameBeforeEmail",
  "missingSpaceBeforeDate",
  "missingSpaceBeforeEmail",
  "multipleAuthors",
  "nulInCommit",
  "zeroPaddedDate",
  "zeroPaddedFilemode",
];

/**
 * The far end of a fetch. The repository was allowed when its state was read (`safe.directory`, under the person's own config), which
 * this git cannot see; it runs nothing of the repository's, and does not go and fetch what a partial clone lacks.
 */
const UPLOAD_PACK =
  "GIT_NO_LAZY_FETCH=1 git -c 'safe.directory=*' -c core.fsmonitor=false -c core.hooksPath=/dev/null -c pack.window=0 upload-pack";

const ALL_HISTORY = 2 ** 31 - 1;

export interface ObjectStoreOptions {
  readonly cacheDir: string;
  /** Any directory of the person's repository. */
  readonly repository: string;
  /** First host uid of the engine's user namespace (0 without one): files of snapshots belong to this + 10001. */
  readonly userBase?: number;
}

/** Opens the store of a repository, making it where there is none. */
export async function openObjectStore(options: ObjectStoreOptions): Promise<ObjectStore> {
  const location = await locateRepository(options.repository);
  const hash = createHash("sha256")
    .update(`${location.objectFormat}\0${location.commonDir}`)
    .digest("hex")
    .slice(0, 24);
  const gitDir = objectStorePath(options.cacheDir, hash);
  await ensureStore(gitDir, location.objectFormat);
  const oneFetch = createSemaphore(1);

  async function importCommit(repository: string, commit: string, history: number): Promise<void> {
    const depth = history <= 0 ? ALL_HISTORY : history;
    const below = await readBelow(gitDir, commit);
    if (below !== null) return importCommit(repository, below, history <= 0 ? 0 : Math.max(1, history - 1));
    if (await isImported(gitDir, commit, depth)) return;
    await oneFetch.use(() =>
      withFileLock(join(gitDir, "bulkhead-fetch.lock"), async () => {
        if (!(await isImported(gitDir, commit, depth))) await fetchCommit(gitDir, repository, commit, depth);
      }),
    );
  }

  const { snapshot } = createSnapshots({
    gitDir,
    cacheDir: options.cacheDir,
    objectFormat: location.objectFormat,
    userBase: options.userBase ?? 0,
    importCommit,
  });
  return {
    gitDir,
    snapshot,
    importCommit,
    async commitWorkTree(repository, headCommit) {
      await importCommit(repository, headCommit, 1);
      return commitWorkTree(gitDir, repository, headCommit);
    },
    readFile: (commit, path) => readCommitFile(gitDir, commit, path),
  };
}

async function ensureStore(gitDir: string, objectFormat: string): Promise<void> {
  if (await exists(join(gitDir, "info/attributes"))) return;
  await mkdir(dirname(gitDir), { recursive: true, mode: 0o700 });
  const temporary = `${gitDir}.tmp-${process.pid}-${createHash("sha256").update(String(process.hrtime.bigint())).digest("hex").slice(0, 8)}`;
  await gitText(null, [
    "init",
    "--quiet",
    "--bare",
    "--template=",
    "--initial-branch=none",
    `--object-format=${objectFormat}`,
    temporary,
  ]);
  await mkdir(join(temporary, "info"), { recursive: true });
  await mkdir(join(temporary, "bulkhead"));
  await chmod(temporary, 0o700);
  await writeFile(join(temporary, "info/attributes"), NEUTRAL_ATTRIBUTES);
  try {
    await rename(temporary, gitDir);
  } catch (cause) {
    await removeTree(temporary);
    // The other of two openers at once was first; theirs is the same.
    if (!(await exists(join(gitDir, "info/attributes")))) {
      throw new RunnerError("workspace-failed", `the object store ${gitDir} could not be made`, { cause });
    }
  }
}

/** How deep a commit was imported is noted in a file of that name; a commit that is there too shallow is fetched again. */
async function isImported(gitDir: string, commit: string, depth: number): Promise<boolean> {
  const noted = await readFile(join(gitDir, "bulkhead", commit), "utf8").catch(() => "0");
  if (Number(noted) < depth) return false;
  return (await runGit(gitDir, ["cat-file", "-e", `${commit}^{commit}`])).exitCode === 0;
}

async function fetchCommit(gitDir: string, repository: string, commit: string, depth: number): Promise<void> {
  if (!/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(commit)) {
    throw new RunnerError("usage", `${commit} is not a full commit id`, { data: { commit } });
  }
  const args = [
    "-c",
    "fetch.fsckObjects=true",
    ...TOLERATED.flatMap((name) => ["-c", `fetch.fsck.${name}=ignore`]),
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--update-shallow",
    `--depth=${depth}`,
    `--upload-pack=${UPLOAD_PACK}`,
    // A bare path could be read as host:path.
    pathToFileURL(repository).href,
    `+${commit}:refs/bulkhead/base/${commit}`,
  ];
  const output = await runGit(gitDir, args, { allowFileProtocol: true });
  if (output.exitCode !== 0) {
    throw new RunnerError(
      "workspace-failed",
      `commit ${commit} could not be read from ${repository}: ${output.stderr.trim().split("\n").slice(0, 4).join("; ")}`,
      {
        cause: gitFailed(["fetch", commit], output, gitDir),
        data: { repository, commit, exitCode: output.exitCode },
        hint: `See whether the repository is whole: git -C ${repository} fsck. A partial clone has to fetch the commit's files first.`,
      },
    );
  }
  await writeFile(join(gitDir, "bulkhead", commit), String(depth));
}

async function readCommitFile(
  gitDir: string,
  commit: string,
  path: string,
): Promise<{ content: Buffer; blob: string; mode: string } | null> {
  // Not a name that a tree can hold; git would take some of these for a directory's content.
  if (path.split("/").some((part) => part === "" || part === "." || part === "..")) return null;
  const listing = await gitBytes(gitDir, [
    "--literal-pathspecs",
    "ls-tree",
    "-z",
    "--full-tree",
    commit,
    "--",
    path,
  ]);
  const match = /^(\d+) blob ([0-9a-f]+)\t/.exec(listing.toString("latin1"));
  const mode = match?.[1];
  const blob = match?.[2];
  if (mode === undefined || blob === undefined || mode === "120000") return null;
  return { content: await gitBytes(gitDir, ["cat-file", "blob", blob]), blob, mode };
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
