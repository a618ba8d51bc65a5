/**
 * The rules that decide whether a changed path may go into a patch: shared by all importers, so that both drivers refuse alike.
 * The caller has asked the ignore rules first: an ignored path never comes here and so never fails anything.
 */
import { createHash } from "node:crypto";
import type { ResultLimits } from "../../model/run.ts";
import { isGitLike, isGitmodulesLike, pathKey, splitPath, symlinkObjection } from "../path-bytes.ts";
import type { BaseTree } from "./base-tree.ts";
import type { ProblemList } from "./problem-list.ts";

/** Longest path the system can open; the tree's own directory comes on top. */
const SYSTEM_PATH_BYTES = 4095;

export interface Admission {
  /** Whether the names on the path may go in. Callers ask for each directory too, before they enter it. */
  admitPath(path: Buffer): boolean;
  admitFile(path: Buffer, size: number): boolean;
  admitSymlink(path: Buffer, target: Buffer): Promise<boolean>;
  admitDeletion(path: Buffer): boolean;
  refuseSpecial(path: Buffer, what: string): void;
}

/** Makes the rules for one import. `rootBytes`: length of the directory that paths will be opened under. */
export function createAdmission(
  limits: ResultLimits,
  problems: ProblemList,
  base: BaseTree,
  rootBytes: number,
): Admission {
  let files = 0;
  let totalBytes = 0;
  const maxPathBytes = Math.min(limits.maxPathBytes, SYSTEM_PATH_BYTES - rootBytes - 1);

  function countOne(path: Buffer): boolean {
    files += 1;
    if (files <= limits.maxFiles) return true;
    problems.add(path, "too-many-files", `more than ${limits.maxFiles} files were changed`);
    return false;
  }

  function countBytes(path: Buffer, size: number): boolean {
    totalBytes += size;
    if (totalBytes <= limits.maxTotalBytes) return true;
    problems.add(
      path,
      "too-many-bytes",
      `the changed files hold more than ${limits.maxTotalBytes} bytes together`,
    );
    return false;
  }

  return {
    admitPath(path) {
      if (path.length > maxPathBytes) {
        problems.add(path, "path-too-long", `${path.length} bytes, the limit is ${maxPathBytes}`);
        return false;
      }
      const parts = splitPath(path);
      if (parts.length > limits.maxDepth) {
        problems.add(path, "too-deep", `more than ${limits.maxDepth} directories deep`);
        return false;
      }
      const last = parts.at(-1);
      if (last && isGitLike(last)) {
        problems.add(path, "git-directory", "git takes this name for its own directory on some systems");
        return false;
      }
      return true;
    },
    admitFile(path, size) {
      if (size > limits.maxFileBytes) {
        problems.add(
          path,
          "too-many-bytes",
          `${size} bytes, the limit for one file is ${limits.maxFileBytes}`,
        );
        return false;
      }
      return countOne(path) && countBytes(path, size);
    },
    async admitSymlink(path, target) {
      const last = splitPath(path).at(-1);
      const objection =
        last && isGitmodulesLike(last)
          ? "git refuses a symbolic link of this name"
          : symlinkObjection(path, target);
      if (objection !== null) {
        const before = await base.lookup(pathKey(path));
        // A link that the repository had before is its owner's business.
        if (before?.mode === "120000" && before.oid === blobId(target, before.oid.length)) return false;
        problems.add(path, "symlink-outside", objection);
        return false;
      }
      return countOne(path) && countBytes(path, target.length);
    },
    admitDeletion: countOne,
    refuseSpecial(path, what) {
      problems.add(path, "special-file", `a ${what} cannot be part of a patch`);
    },
  };
}

/** The id git gives a blob; the length of an id tells the repository's format. */
export function blobId(content: Buffer, idLength: number): string {
  return blobHash(content.length, idLength).update(content).digest("hex");
}

/** A hash that has taken in the header of a blob of `size` bytes. */
export function blobHash(size: number, idLength: number): ReturnType<typeof createHash> {
  return createHash(idLength === 64 ? "sha256" : "sha1").update(`blob ${size}\0`);
}
