import { constants } from "node:fs";
import { lstat, open } from "node:fs/promises";
import { join } from "node:path";

/** In the top of the work tree: which ignored files every task gets. A convention that several tools share; gitignore syntax. */
export const WORKTREE_INCLUDE = ".worktreeinclude";

const MAX_BYTES = 64 * 1024;

/** Patterns of `.worktreeinclude`; none where there is no such file. Read from the work tree, as the files that it names. */
export async function readWorktreeInclude(
  repository: string,
): Promise<{ readonly patterns: readonly string[]; readonly warnings: readonly string[] }> {
  const path = join(repository, WORKTREE_INCLUDE);
  const found = await lstat(path).catch(() => null);
  if (found === null) return { patterns: [], warnings: [] };
  // A link could name any file of the machine, and its lines would be shown.
  if (!found.isFile()) return refuse("it is no regular file");
  if (found.size > MAX_BYTES) return refuse(`it has ${found.size} bytes, the limit is ${MAX_BYTES}`);
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const lines = (await handle.readFile("utf8")).replace(/^\ufeff/, "").split(/\r?\n/);
    return { patterns: lines.filter((line) => line.trim() !== "" && !line.startsWith("#")), warnings: [] };
  } finally {
    await handle.close();
  }
}

function refuse(why: string): { patterns: readonly string[]; warnings: readonly string[] } {
  return { patterns: [], warnings: [`${WORKTREE_INCLUDE} is not used: ${why}`] };
}
