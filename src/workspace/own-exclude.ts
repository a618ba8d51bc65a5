import { lstat, open } from "node:fs/promises";
import { join } from "node:path";
import { locateRepository } from "./repository-state.ts";

/** Patterns past it are left out: files that they name then count as new ones, which loses nothing. */
const MAX_BYTES = 256 * 1024;

/**
 * The repository's `info/exclude`, which the person keeps to themselves; empty where there is none or it cannot be read. `top` is the
 * top of a work tree. Git is asked only where that is not the main one: this is read for every attempt.
 */
export async function readOwnExclude(top: string): Promise<string> {
  try {
    const gitDir = join(top, ".git");
    const commonDir = (await lstat(gitDir)).isDirectory() ? gitDir : (await locateRepository(top)).commonDir;
    const file = await open(join(commonDir, "info", "exclude"));
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, 0);
      return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch {
    return "";
  }
}
