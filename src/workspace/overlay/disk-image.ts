import { mkdir, mkdtemp, open } from "node:fs/promises";
import { join } from "node:path";
import { RunnerError } from "../../model/runner-error.ts";
import { removeTree } from "../remove-tree.ts";
import { runTool } from "../run-tool.ts";
import { unmount } from "./mounts.ts";

/** A file system of its own in a sparse file, so that what an attempt writes has a limit that the kernel keeps. */
export interface DiskImage {
  /** Where it is mounted. */
  readonly directory: string;
}

const BYTES_PER_INODE = 16_384;
const MIN_INODES = 16_384;
const INODE_BYTES = 256;
const JOURNAL_MB = 4;
/** Bitmaps and group descriptors: a fixed part, and one that grows with the size. */
const OVERHEAD_BYTES = (JOURNAL_MB + 2) * 1024 ** 2;
const OVERHEAD_SHARE = 1 / 256;
const BLOCK_BYTES = 4_096;
const PROBE_BYTES = 8 * 1024 ** 2;

/**
 * Makes and mounts a file system that holds about `bytes` of files (and a number of inodes that grows with it). A few megabytes on disk
 * at first. The journal stays: without one, ext4 creates files slowly after many were removed.
 */
export async function createDiskImage(attemptDir: string, bytes: number): Promise<DiskImage> {
  const { image, directory } = imagePaths(attemptDir);
  const inodes = Math.max(MIN_INODES, Math.ceil(bytes / BYTES_PER_INODE));
  const size =
    Math.ceil((bytes * (1 + OVERHEAD_SHARE) + inodes * INODE_BYTES + OVERHEAD_BYTES) / BLOCK_BYTES) *
    BLOCK_BYTES;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = await open(image, "wx", 0o600);
  await file.truncate(size);
  await file.close();
  const features = [
    "-E",
    "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
    "-J",
    `size=${JOURNAL_MB}`,
    "-m",
    "0",
  ];
  await runTool("mke2fs", [
    "-q",
    "-F",
    "-t",
    "ext4",
    "-b",
    String(BLOCK_BYTES),
    "-N",
    String(inodes),
    ...features,
    image,
  ]);
  try {
    // noinit_itable: nobody fills the empty inode tables in the background.
    await runTool("mount", ["-o", "loop,nosuid,nodev,noatime,noinit_itable", image, directory]);
  } catch (cause) {
    throw new RunnerError(
      "workspace-failed",
      `the disk image ${image} of ${bytes} bytes could not be mounted`,
      {
        cause,
        data: { image, bytes },
        hint: "All loop devices may be in use (`losetup --all`). Run fewer attempts at once, or leave the disk cap off.",
      },
    );
  }
  return { directory };
}

/** Unmounts the image; its file goes with the rest of the attempt's files. */
export function closeDiskImage(attemptDir: string): Promise<void> {
  return unmount(imagePaths(attemptDir).directory);
}

/** Where an attempt's image lies and is mounted. */
export function imagePaths(attemptDir: string): { image: string; directory: string } {
  return { image: join(attemptDir, "disk.img"), directory: join(attemptDir, "disk") };
}

/** Why no image can be made on this machine, found out by making a small one below `parent`; null where it can. Leaves nothing. */
export async function probeDiskImage(parent: string): Promise<string | null> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const attemptDir = await mkdtemp(join(parent, "probe-"));
  try {
    await createDiskImage(attemptDir, PROBE_BYTES);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await closeDiskImage(attemptDir);
    await removeTree(attemptDir);
  }
}
