/** Hands committed events to listeners. */
export interface Delivery<T> {
  subscribe(listener: (item: T) => void): () => void;
  deliver(items: readonly T[]): void;
}

/**
 * Makes a delivery without listeners. Each listener sees every item in order, also where a listener appends and so causes more: those wait
 * until all have seen the earlier ones. What a listener throws is a bug of the listener: the others still hear, the append still succeeds,
 * and the error surfaces as an uncaught one.
 */
export function createDelivery<T>(): Delivery<T> {
  const listeners = new Set<(item: T) => void>();
  let queue: T[] = [];
  let isDelivering = false;

  function tell(item: T): void {
    for (const listener of [...listeners]) {
      if (!listeners.has(listener)) continue;
      try {
        listener(item);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  return {
    subscribe(listener) {
      // A wrapper of its own for each call: the same function subscribed twice hears twice and leaves once.
      const own = (item: T) => listener(item);
      listeners.add(own);
      return () => {
        listeners.delete(own);
      };
    },
    deliver(items) {
      if (listeners.size === 0 && !isDelivering) return;
      for (const item of items) queue.push(item);
      if (isDelivering) return;
      isDelivering = true;
      // The loop also meets what listeners cause to be added meanwhile.
      for (const item of queue) tell(item);
      queue = [];
      isDelivering = false;
    },
  };
}
