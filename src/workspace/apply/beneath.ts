/**
 * File operations below a directory that never leave it, whatever anyone does to the tree meanwhile.
 *
 * Each directory on the way is opened from the one above it with O_NOFOLLOW, and the last step is made relative to that open
 * directory: what `openat` and `renameat` do. Node has neither, but `/proc/self/fd/N/name` resolves the same way. That matters most
 * where bulkhead runs as root in a repository that belongs to somebody else.
 */
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, rename, rmdir, unlink } from "node:fs/promises";
import { RunnerError } from "../../model/runner-error.ts";
import { pathKey, showPath, splitPath } from "../path-bytes.ts";
import type { Owner } from "./user-repository.ts";

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** What a name is: `other` covers devices, fifos and sockets. */
export type NameKind = "missing" | "file" | "symlink" | "directory" | "other" | "behind-link";

/** An opened directory tree. */
export interface Beneath {
  /** What lies at the path; `behind-link` where something above it is no directory. */
  kindOf(path: Buffer): Promise<NameKind>;
  /** Names in a directory, `[]` where there is none. */
  list(path: Buffer): Promise<Buffer[]>;
  /** Removes a file or link and then the directories above that are empty. A missing one is fine. */
  remove(path: Buffer): Promise<void>;
  /** Moves a file or link in from another tree, making directories on the way. */
  moveIn(from: Beneath, path: Buffer): Promise<void>;
  /** Runs `step` with a path that stands for `path` while it runs; null where a directory on the way is missing. */
  use<T>(path: Buffer, step: (path: Buffer) => Promise<T>): Promise<T | null>;
  close(): Promise<void>;
}

/** Opens the directory `root`. New directories belong to `owner`. */
export async function openBeneath(root: string, owner: Owner | null): Promise<Beneath> {
  const top = await open(root, DIRECTORY);

  /** Opens the directory that holds the path's last name; null where it, or one above it, is missing. */
  async function openParent(path: Buffer, create: boolean): Promise<{ at: FileHandle; name: Buffer } | null> {
    const parts = splitPath(path);
    const name = parts.pop() ?? path;
    let at = top;
    for (const part of parts) {
      const next = await enter(at, part, create);
      if (at !== top) await at.close();
      if (next === null) return null;
      at = next;
    }
    return { at, name };
  }

  async function enter(at: FileHandle, name: Buffer, create: boolean): Promise<FileHandle | null> {
    const path = below(at, name);
    try {
      return await open(path, DIRECTORY);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
      if (!create) return null;
    }
    await mkdir(path).catch((error: unknown) => {
      if (codeOf(error) !== "EEXIST") throw error;
    });
    const made = await open(path, DIRECTORY);
    if (owner !== null) await made.chown(owner.uid, owner.gid);
    return made;
  }

  async function use<T>(path: Buffer, step: (path: Buffer) => Promise<T>, create = false): Promise<T | null> {
    const parent = await openParent(path, create);
    if (parent === null) return null;
    try {
      return await step(below(parent.at, parent.name));
    } finally {
      if (parent.at !== top) await parent.at.close();
    }
  }

  return {
    use: (path, step) => use(path, step),
    async kindOf(path) {
      try {
        const stat = await use(path, (at) => lstat(at));
        if (stat === null) return "missing";
        if (stat.isFile()) return "file";
        if (stat.isSymbolicLink()) return "symlink";
        return stat.isDirectory() ? "directory" : "other";
      } catch (error) {
        const code = codeOf(error);
        if (code === "ENOENT") return "missing";
        if (code === "ENOTDIR" || code === "ELOOP") return "behind-link";
        throw error;
      }
    },
    async list(path) {
      try {
        return (await use(path, (at) => readdir(at, { encoding: "buffer" }))) ?? [];
      } catch (error) {
        if (codeOf(error) === "ENOENT") return [];
        throw error;
      }
    },
    async remove(path) {
      await use(path, (at) => ignoring(["ENOENT"], unlink(at)));
      const parts = splitPath(path);
      for (parts.pop(); parts.length > 0; parts.pop()) {
        const directory = Buffer.from(parts.map(pathKey).join("/"), "latin1");
        const isGone = await use(directory, (at) => ignoring(["ENOTEMPTY", "EEXIST", "ENOENT"], rmdir(at)));
        if (!isGone) return;
      }
    },
    async moveIn(from, path) {
      const isMoved = await from.use(path, async (source) => {
        await use(path, (target) => rename(source, target), true);
        return true;
      });
      if (isMoved !== true) throw new RunnerError("workspace-failed", `${showPath(path)} was not staged`);
    },
    close: () => top.close(),
  };
}

/** Whether the step succeeded; false where it failed with one of the codes. */
async function ignoring(codes: readonly string[], step: Promise<void>): Promise<boolean> {
  try {
    await step;
    return true;
  } catch (error) {
    if (codes.includes(codeOf(error))) return false;
    throw error;
  }
}

function below(at: FileHandle, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${at.fd}/`), name]);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
