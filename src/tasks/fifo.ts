/** A first-in-first-out queue whose head can be looked at before it is taken; each operation costs O(1). */
export interface Fifo<T> {
  push(item: T): void;
  peek(): T | undefined;
  drop(): void;
}

/** Makes an empty queue. */
export function createFifo<T>(): Fifo<T> {
  let items: T[] = [];
  let head = 0;
  return {
    push: (item) => {
      items.push(item);
    },
    peek: () => items[head],
    drop() {
      if (head < items.length) head += 1;
      if (head === items.length) {
        items = [];
        head = 0;
      }
    },
  };
}
