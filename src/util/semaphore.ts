/** Bounds how many callers are inside `use` at once; waiters are served in the order they came. */
export interface Semaphore {
  use<T>(work: () => Promise<T>): Promise<T>;
}

/** Makes a semaphore with `permits` places (at least 1). */
export function createSemaphore(permits: number): Semaphore {
  let free = Math.max(1, permits);
  const waiters: Array<() => void> = [];
  return {
    async use(work) {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiters.push(resolve));
      try {
        return await work();
      } finally {
        const next = waiters.shift();
        if (next) next();
        else free += 1;
      }
    },
  };
}
