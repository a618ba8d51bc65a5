import { type FSWatcher, watch } from "node:fs";
import { createDeferred } from "../util/deferred.ts";

/** Wakes a loop when something changed in directories another process writes to. */
export interface Waker {
  /** Changes from here on settle the next `next()`: call it before looking. */
  rearm(): void;
  /** Watches a directory too; one that is not there yet may be named again later. */
  add(directory: string): void;
  next(): Promise<void>;
  close(): void;
}

/** How long a change may go unnoticed where the kernel's watch fails (network file systems, exhausted inotify). */
const RECONCILE_MS = 2_000;

/** Opens a waker on one directory. */
export function createWaker(directory: string): Waker {
  const watchers = new Map<string, FSWatcher>();
  let changed = createDeferred<void>();
  const add = (path: string): void => {
    if (watchers.has(path)) return;
    try {
      const watcher = watch(path, () => changed.resolve());
      watcher.on("error", () => undefined /* the slow look covers it */);
      watchers.set(path, watcher);
    } catch {
      // Not there yet, or no watch to be had: the slow look covers it.
    }
  };
  add(directory);
  return {
    rearm() {
      changed = createDeferred<void>();
    },
    add,
    async next() {
      const timer = setTimeout(() => changed.resolve(), RECONCILE_MS);
      await changed.promise;
      clearTimeout(timer);
    },
    close() {
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}
