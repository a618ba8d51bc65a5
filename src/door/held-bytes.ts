/**
 * Bytes held for all connections of a door together: begun frames and replies that are not read. Each connection has its own bound;
 * this one keeps 64 connections from each using theirs in full.
 */
export interface HeldBytes {
  /** Says that `owner` now holds `bytes`; false where the door holds too much with it. */
  set(owner: object, bytes: number): boolean;
}

/** Makes a count that says no above `maxBytes`. An owner that is gone must be set to 0. */
export function createHeldBytes(maxBytes: number): HeldBytes {
  const held = new Map<object, number>();
  let total = 0;
  return {
    set(owner, bytes) {
      const before = held.get(owner) ?? 0;
      if (before !== bytes) {
        total += bytes - before;
        if (bytes === 0) held.delete(owner);
        else held.set(owner, bytes);
      }
      return total <= maxBytes;
    },
  };
}
