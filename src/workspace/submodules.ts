/**
 * Finds where the commits that gitlinks name can be had on this machine: in the git directories that the person's own
 * `git submodule update` has made (docs/adr/0007-submodules.md). Nothing is fetched from elsewhere, nothing is run, nothing written.
 *
 * Trust: names and paths come from `.gitmodules` of the commit. A name that would lead out of `modules/` is not looked up, a commit
 * counts only if an object of that id is there.
 */
import { readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { runGit } from "./git.ts";
import { inRepository, type RepositoryLocation } from "./in-repository.ts";
import { type GitRunner, gitRunner, listTree, splitNul, type TreeEntry } from "./list-tree.ts";
import { pathOfKey, showPath, utf8Path } from "./path-bytes.ts";

/** A gitlink of a commit, or of a submodule's commit. */
export interface Submodule {
  /** From the top of the repository; one character per byte. */
  readonly path: string;
  readonly commit: string;
  /** A local git directory that has the commit; null where none was found, and `why`. */
  readonly gitDir: string | null;
  readonly why: "no-entry" | "not-cloned" | "no-commit" | "too-deep" | null;
}

/** Where the git directories of one repository's submodules may lie. */
interface Place {
  /** Directories with a `modules` directory in them. */
  readonly gitDirs: readonly string[];
  /** The work tree, for a submodule that keeps its own `.git`; null where it has no name in UTF-8. */
  readonly top: string | null;
}

const MAX_DEPTH = 8;
const MAX_GITFILE_BYTES = 4096;

/**
 * Lists the submodules of `commit`, nested ones too, outer before inner. `run` reads a repository that has the commit; `entries` are its
 * files where they are known already.
 */
export async function findSubmodules(
  location: Pick<RepositoryLocation, "top" | "commonDir">,
  run: GitRunner,
  commit: string,
  entries?: readonly TreeEntry[],
): Promise<Submodule[]> {
  const output = await inRepository(location.top, ["rev-parse", "--path-format=absolute", "--git-dir"]);
  // A linked work tree has submodules of its own; a clone of them in the main one serves as well.
  const own = output.exitCode === 0 ? [output.stdout.toString("utf8").replace(/\n$/, "")] : [];
  const place = { gitDirs: [...new Set([...own, location.commonDir])], top: location.top };
  return findIn(place, run, { commit, prefix: "", depth: 1, entries: entries ?? null });
}

/** Whether a commit can have submodules at all: a cheap question, asked first. */
export async function hasSubmodules(run: GitRunner, commit: string): Promise<boolean> {
  return (await run(["cat-file", "-e", `${commit}:.gitmodules`])).exitCode === 0;
}

/** One sentence for people about a submodule that cannot be had. */
export function whySubmoduleIsEmpty({ path, commit, why }: Submodule): string {
  const name = showPath(pathOfKey(path));
  const subject = `submodule ${name} stays an empty directory in snapshots`;
  switch (why) {
    case "no-entry":
      return `${subject}: .gitmodules has no entry for it`;
    case "too-deep":
      return `${subject}: it is nested more than ${MAX_DEPTH} deep`;
    case "no-commit":
      return `${subject}: its clone here lacks commit ${commit.slice(0, 12)}; \`git submodule update --init --recursive\` fetches it`;
    default:
      return `${subject}: it is not cloned here; \`git submodule update --init --recursive\` does it`;
  }
}

async function findIn(
  place: Place,
  run: GitRunner,
  at: { commit: string; prefix: string; depth: number; entries: readonly TreeEntry[] | null },
): Promise<Submodule[]> {
  const links = (at.entries ?? (await listTree(run, at.commit))).filter(({ type }) => type === "commit");
  if (links.length === 0) return [];
  const names = await readNames(run, at.commit);
  const found: Submodule[] = [];
  for (const link of links) {
    const path = `${at.prefix}${link.path}`;
    const name = names.get(link.path);
    const about = { path, commit: link.oid };
    if (at.depth > MAX_DEPTH) {
      found.push({ ...about, gitDir: null, why: "too-deep" });
      continue;
    }
    if (name === undefined) {
      found.push({ ...about, gitDir: null, why: "no-entry" });
      continue;
    }
    const text = utf8Path(pathOfKey(link.path));
    const top = place.top === null || text === null ? null : join(place.top, text);
    const { gitDir, why } = await findGitDir(place, name, top, link.oid);
    found.push({ ...about, gitDir, why });
    if (gitDir === null) continue;
    const next = { commit: link.oid, prefix: `${path}/`, depth: at.depth + 1, entries: null };
    found.push(...(await findIn({ gitDirs: [gitDir], top }, gitRunner(gitDir), next)));
  }
  return found;
}

/** Names by path, as the commit's `.gitmodules` has them. */
async function readNames(run: GitRunner, commit: string): Promise<Map<string, string>> {
  const args = ["config", "-z", "--blob", `${commit}:.gitmodules`, "--get-regexp", "^submodule\\..*\\.path$"];
  const output = await run(args);
  const names = new Map<string, string>();
  // 1: nothing matches; 128: no such file, or one that git cannot read. Either way there is no entry.
  if (output.exitCode !== 0) return names;
  for (const record of splitNul(output.stdout)) {
    const cut = record.indexOf("\n");
    const name = /^submodule\.(.+)\.path$/s.exec(record.slice(0, cut))?.[1];
    if (name !== undefined) names.set(record.slice(cut + 1).replace(/\/+$/, ""), name);
  }
  return names;
}

async function findGitDir(
  place: Place,
  name: string,
  top: string | null,
  commit: string,
): Promise<Pick<Submodule, "gitDir" | "why">> {
  const text = utf8Path(pathOfKey(name));
  const candidates =
    text === null || !isSafeName(text) ? [] : place.gitDirs.map((dir) => join(dir, "modules", text));
  const own = top === null ? null : await readGitLink(top);
  if (own !== null) candidates.push(own);
  let isCloned = false;
  for (const gitDir of candidates) {
    if (!(await isGitDirectory(gitDir))) continue;
    isCloned = true;
    const env = { GIT_NO_LAZY_FETCH: "1" };
    const output = await runGit(gitDir, ["cat-file", "-e", `${commit}^{commit}`], { env });
    if (output.exitCode === 0) return { gitDir, why: null };
  }
  return { gitDir: null, why: isCloned ? "no-commit" : "not-cloned" };
}

/** git's own rule: no part of a name may lead upwards. */
function isSafeName(name: string): boolean {
  return name !== "" && !name.startsWith("/") && !name.split(/[/\\]/).includes("..");
}

async function isGitDirectory(path: string): Promise<boolean> {
  const parts = await Promise.all(
    ["HEAD", "objects"].map((name) =>
      stat(join(path, name)).then(
        () => true,
        () => false,
      ),
    ),
  );
  return parts.every(Boolean);
}

/** The git directory that a checked-out submodule names: its own `.git`, or what the file of that name points to. */
async function readGitLink(top: string): Promise<string | null> {
  const path = join(top, ".git");
  const found = await stat(path).catch(() => null);
  if (found === null) return null;
  if (found.isDirectory()) return path;
  if (!found.isFile() || found.size > MAX_GITFILE_BYTES) return null;
  const target = /^gitdir: (.+?)\n*$/s.exec(await readFile(path, "utf8"))?.[1];
  return target === undefined ? null : resolve(top, target);
}
