/**
 * Directories that are built once, then shared and never changed: base trees and layers.
 *
 * Theory of operation: callers in this process share one promise per directory; processes exclude each other by a file lock.
 * A build happens in a directory beside its final place and is moved there when complete, so a crash half-way leaves only a
 * leftover that the next build under the same lock removes. LIMITATION: files are not flushed to disk one by one (20,000 of
 * them); after a reboot the first user checks the directory instead, see `intact`.
 */
import { access, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { withFileLock } from "./file-lock.ts";
import { removeTree } from "./remove-tree.ts";

export interface BuildOnce {
  /** Returns when `directory` exists, complete. */
  ensure(request: {
    readonly directory: string;
    build(temporary: string): Promise<void>;
    /** Whether a directory that an earlier boot of the machine built is still whole. Called at most once per process. */
    intact(directory: string): Promise<boolean>;
  }): Promise<void>;
}

const BOOT_FILE = "boot-id";

/** Makes a builder. Single flight holds per builder, so a process needs one per cache directory. */
export function createBuildOnce(): BuildOnce {
  const flights = new Map<string, Promise<void>>();
  return {
    async ensure(request) {
      const { directory } = request;
      const known = flights.get(directory);
      if (known !== undefined) {
        await known;
        if (await exists(directory)) return;
        // Somebody cleared the cache; the first of us to see it builds again.
        if (flights.get(directory) === known) flights.delete(directory);
        return this.ensure(request);
      }
      const flight = ensureDirectory(request);
      flights.set(directory, flight);
      try {
        await flight;
      } catch (error) {
        if (flights.get(directory) === flight) flights.delete(directory);
        throw error;
      }
    },
  };
}

async function ensureDirectory(request: Parameters<BuildOnce["ensure"]>[0]): Promise<void> {
  const { directory } = request;
  const bootId = (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
  const builtIn = () => readFile(join(directory, BOOT_FILE), "utf8").catch(() => null);
  if ((await builtIn()) === bootId) return;
  await mkdir(dirname(directory), { recursive: true, mode: 0o700 });
  await withFileLock(`${directory}.lock`, async () => {
    const boot = await builtIn();
    if (boot === bootId) return;
    if (boot !== null) {
      if (await request.intact(directory)) {
        await writeFile(join(directory, BOOT_FILE), bootId);
        return;
      }
      await removeTree(directory);
    }
    await removeLeftovers(directory);
    const temporary = `${directory}.tmp-${process.pid}`;
    await mkdir(temporary, { mode: 0o700 });
    try {
      await request.build(temporary);
      await writeFile(join(temporary, BOOT_FILE), bootId);
      await rename(temporary, directory);
    } catch (error) {
      await removeTree(temporary);
      throw error;
    }
  });
}

/** Under the lock nobody else builds this directory: what lies beside it was left by a crash. */
async function removeLeftovers(directory: string): Promise<void> {
  const prefix = `${basename(directory)}.tmp-`;
  for (const name of await readdir(dirname(directory))) {
    if (name.startsWith(prefix)) await removeTree(join(dirname(directory), name));
  }
}

function exists(directory: string): Promise<boolean> {
  return access(join(directory, BOOT_FILE)).then(
    () => true,
    () => false,
  );
}
