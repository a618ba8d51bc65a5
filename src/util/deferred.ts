/** A promise with its two ends in the open, for code that settles it from an event. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

/** Makes a pending Deferred. */
export function createDeferred<T>(): Deferred<T> {
  return Promise.withResolvers<T>();
}
