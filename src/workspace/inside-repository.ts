/**
 * The `.git` that an attempt finds in its workspace: an own, small repository with exactly the objects it needs, on branch
 * `work`. Nothing in it leads to the person's repository or to bulkhead's store: no remote, no alternates, no hook.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gitFailed, gitText, runGit, spawnGit } from "./git.ts";

/** Conversions are off inside as outside, so that `git diff` there shows what bulkhead will read. */
const INSIDE_ATTRIBUTES = "* !text !eol !ident !working-tree-encoding !filter\n";

const CONFIG = (objectFormat: string) => `[core]
	repositoryformatversion = ${objectFormat === "sha256" ? 1 : 0}
	filemode = true
	bare = false
	logallrefupdates = true
	autocrlf = false
	symlinks = true
${objectFormat === "sha256" ? "[extensions]\n\tobjectformat = sha256\n" : ""}[user]
	name = agent
	email = agent@localhost
[commit]
	gpgsign = false
[tag]
	gpgsign = false
[gc]
	auto = 0
[maintenance]
	auto = false
[init]
	defaultBranch = work
`;

/** Lays out a git directory whose HEAD is `head`; objects come by `packObjects`. */
export async function layGitDirectory(
  gitDir: string,
  options: { head: string; objectFormat: string; shallow: readonly string[]; excludes: readonly string[] },
): Promise<void> {
  await Promise.all(
    ["objects/pack", "objects/info", "refs/heads", "refs/tags", "info"].map((name) =>
      mkdir(join(gitDir, name), { recursive: true }),
    ),
  );
  await Promise.all([
    writeFile(join(gitDir, "HEAD"), "ref: refs/heads/work\n"),
    writeFile(join(gitDir, "refs/heads/work"), `${options.head}\n`),
    writeFile(join(gitDir, "config"), CONFIG(options.objectFormat)),
    writeFile(join(gitDir, "info/attributes"), INSIDE_ATTRIBUTES),
    writeFile(
      join(gitDir, "info/exclude"),
      Buffer.from(options.excludes.map((line) => `${line}\n`).join(""), "latin1"),
    ),
    ...(options.shallow.length > 0
      ? [writeFile(join(gitDir, "shallow"), options.shallow.map((id) => `${id}\n`).join(""))]
      : []),
  ]);
}

/** Packs what `revisions` (arguments of rev-list) reach in the store into `gitDir`. */
export async function packObjects(
  storeDir: string,
  revisions: readonly string[],
  gitDir: string,
): Promise<void> {
  const listArgs = ["rev-list", "--objects", ...revisions];
  // Deltas that the store has are taken over; no time is spent on looking for more.
  const packArgs = [
    "pack-objects",
    "--quiet",
    "--window=0",
    "--delta-base-offset",
    join(gitDir, "objects/pack/pack"),
  ];
  const list = spawnGit(storeDir, listArgs);
  const pack = spawnGit(storeDir, packArgs);
  list.stdin.end();
  list.stdout.pipe(pack.stdin);
  pack.stdout.resume();
  const errors = { list: "", pack: "" };
  list.stderr.on("data", (chunk: Buffer) => {
    errors.list += chunk.toString("utf8");
  });
  pack.stderr.on("data", (chunk: Buffer) => {
    errors.pack += chunk.toString("utf8");
  });
  const [listExit, packExit] = await Promise.all([list.ended, pack.ended]);
  if (listExit !== 0) throw gitFailed(listArgs, { exitCode: listExit, stderr: errors.list }, storeDir);
  if (packExit !== 0) throw gitFailed(packArgs, { exitCode: packExit, stderr: errors.pack }, storeDir);
}

/** Commits among the last `history` of `commit` (0: all) of which a parent is left out. */
export async function shallowBoundary(storeDir: string, commit: string, history: number): Promise<string[]> {
  const cut = new Set(
    (await readFile(join(storeDir, "shallow"), "utf8").catch(() => "")).split("\n").filter((id) => id !== ""),
  );
  const output = await gitText(storeDir, ["rev-list", "--parents", ...historyArguments(history), commit]);
  const lines = output.split("\n").map((line) => line.split(" "));
  const taken = new Set(lines.map(([id]) => id));
  return lines
    .filter(([id = "", ...parents]) => cut.has(id) || parents.some((parent) => !taken.has(parent)))
    .map(([id = ""]) => id);
}

/** How rev-list says "the last N commits". */
export function historyArguments(history: number): string[] {
  return history <= 0 ? [] : [`--max-count=${history}`];
}

/** Makes a commit whose id depends on its content alone: fixed author, the date of `dateFrom`. */
export async function commitTree(
  storeDir: string,
  options: { tree: string; parents: readonly string[]; message: string; dateFrom: string },
): Promise<string> {
  const date = await gitText(storeDir, [
    "log",
    "-1",
    "--no-show-signature",
    "--format=%cd",
    "--date=raw",
    options.dateFrom,
  ]);
  const args = [
    "commit-tree",
    ...options.parents.flatMap((parent) => ["-p", parent]),
    "-F",
    "-",
    options.tree,
  ];
  return gitText(storeDir, args, {
    input: options.message,
    env: {
      GIT_AUTHOR_NAME: "bulkhead",
      GIT_AUTHOR_EMAIL: "bulkhead@localhost",
      GIT_AUTHOR_DATE: date,
      GIT_COMMITTER_NAME: "bulkhead",
      GIT_COMMITTER_EMAIL: "bulkhead@localhost",
      GIT_COMMITTER_DATE: date,
    },
  });
}

/** The tree of `commit` without the entries of `left`, written to the store. `indexFile` is overwritten. */
export async function treeWithout(
  storeDir: string,
  commit: string,
  left: readonly string[],
  indexFile: string,
): Promise<string> {
  const env = { GIT_INDEX_FILE: indexFile };
  await gitText(storeDir, ["read-tree", commit], { env });
  const zero = "0".repeat(commit.length);
  const input = Buffer.from(left.map((path) => `0 ${zero}\t${path}\0`).join(""), "latin1");
  const output = await runGit(storeDir, ["update-index", "-z", "--index-info"], { env, input });
  if (output.exitCode !== 0) throw gitFailed(["update-index", "--index-info"], output, storeDir);
  return gitText(storeDir, ["write-tree"], { env });
}
