export interface RankedEntry {
  /** The lower goes first: a priority, or a time. */
  readonly rank: number;
  /** The task's index; of equal ranks the earlier in plan order goes first. */
  readonly index: number;
}

/**
 * A priority queue of tasks (binary heap). Nothing is ever taken out of its middle: whoever pops tells from the task's state whether
 * the entry still means something, which keeps every operation at O(log n) and lets a fold of the log push without popping.
 */
export interface RankedQueue {
  /** Comparisons made so far: what its work is measured by. */
  readonly steps: number;
  readonly size: number;
  push(entry: RankedEntry): void;
  peek(): RankedEntry | undefined;
  pop(): RankedEntry | undefined;
}

/** Makes an empty queue. */
export function createRankedQueue(): RankedQueue {
  const heap: RankedEntry[] = [];
  let steps = 0;

  function isBefore(a: RankedEntry, b: RankedEntry): boolean {
    steps += 1;
    return a.rank < b.rank || (a.rank === b.rank && a.index < b.index);
  }

  function sink(entry: RankedEntry): void {
    let hole = 0;
    for (;;) {
      let childAt = 2 * hole + 1;
      let child = heap[childAt];
      if (!child) break;
      const right = heap[childAt + 1];
      if (right && isBefore(right, child)) {
        child = right;
        childAt += 1;
      }
      if (!isBefore(child, entry)) break;
      heap[hole] = child;
      hole = childAt;
    }
    heap[hole] = entry;
  }

  return {
    get steps() {
      return steps;
    },
    get size() {
      return heap.length;
    },
    push(entry) {
      let hole = heap.length;
      heap.push(entry);
      while (hole > 0) {
        const parentAt = (hole - 1) >> 1;
        const parent = heap[parentAt];
        if (!parent || !isBefore(entry, parent)) break;
        heap[hole] = parent;
        hole = parentAt;
      }
      heap[hole] = entry;
    },
    peek: () => heap[0],
    pop() {
      const top = heap[0];
      const last = heap.pop();
      if (last && heap.length > 0) sink(last);
      return top;
    },
  };
}
