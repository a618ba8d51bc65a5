import { readFile } from "node:fs/promises";
import { RunnerError } from "../../model/runner-error.ts";
import type { UserRepository } from "./user-repository.ts";

/** Git's own lock on the index, held by an apply: no git command changes the index meanwhile. */
export interface IndexLock {
  /** Replaces the index by a file of the same file system, and lets go. */
  commit(newIndex: string): Promise<void>;
  release(): Promise<void>;
}

/** Takes the lock, marked as the apply's own; null where another git has it. */
export async function lockIndex(repository: UserRepository, id: string): Promise<IndexLock | null> {
  const lock = `${repository.indexPath}.lock`;
  // A link appears with its content at once: no kill leaves a lock that does not say whose it is.
  const script = 'printf "%s\\n" "$1" > "$0.$2" && ln "$0.$2" "$0"; code=$?; rm -f -- "$0.$2"; exit "$code"';
  const taken = await repository.run("sh", ["-c", script, lock, mark(id), id]);
  if (taken.exitCode !== 0) return null;
  const release = () => releaseIndexLock(repository, id);
  return {
    release,
    async commit(newIndex) {
      const moved = await repository.run("mv", ["-fT", "--", newIndex, repository.indexPath]);
      await release();
      if (moved.exitCode !== 0)
        throw new RunnerError("workspace-failed", `the index could not be replaced: ${moved.stderr.trim()}`);
    },
  };
}

/** Removes the lock where it is this apply's; another's is left alone. */
export async function releaseIndexLock(repository: UserRepository, id: string): Promise<void> {
  const lock = `${repository.indexPath}.lock`;
  const content = await readFile(lock, "latin1").catch(() => "");
  if (content.trim() === mark(id)) await repository.run("rm", ["-f", "--", lock]);
}

function mark(id: string): string {
  return `bulkhead apply ${id}`;
}
