/**
 * Finds many byte strings in one pass (Aho–Corasick), as a table over byte classes: bytes that occur in no pattern share class 0,
 * so the table stays small although the input is arbitrary bytes. Immutable: one automaton serves any number of streams.
 */
export interface ByteAutomaton {
  /** Class of each byte value. */
  readonly classOf: Uint16Array;
  readonly classes: number;
  /** `next[state * classes + class]`: the state after that byte. State 0 is the root. */
  readonly next: Int32Array;
  /** Length of the longest text that this state is a prefix for: how many bytes back a match could still begin. */
  readonly depth: Int32Array;
  /** Length of the longest pattern that ends in this state; 0 for none. */
  readonly matched: Int32Array;
}

/** Compiles patterns. Cost and memory follow their total length. */
export function compileAutomaton(patterns: readonly Uint8Array[]): ByteAutomaton {
  const classOf = new Uint16Array(256);
  let classes = 1;
  let maxStates = 1;
  for (const pattern of patterns) {
    maxStates += pattern.length;
    for (const byte of pattern) if (classOf[byte] === 0) classOf[byte] = classes++;
  }
  const next = new Int32Array(maxStates * classes);
  const depth = new Int32Array(maxStates);
  const matched = new Int32Array(maxStates);
  let states = 1;

  for (const pattern of patterns) {
    let state = 0;
    for (const byte of pattern) {
      const edge = state * classes + at(classOf, byte);
      if (next[edge] === 0) {
        depth[states] = at(depth, state) + 1;
        next[edge] = states++;
      }
      state = at(next, edge);
    }
    matched[state] = Math.max(at(matched, state), pattern.length);
  }

  // Breadth first, so that the state of the longest proper suffix is complete before it is asked.
  const suffix = new Int32Array(states);
  const queue: number[] = [];
  for (let c = 0; c < classes; c += 1) if (at(next, c) !== 0) queue.push(at(next, c));
  for (let head = 0; head < queue.length; head += 1) {
    const state = at(queue, head);
    const fallback = at(suffix, state);
    matched[state] = Math.max(at(matched, state), at(matched, fallback));
    for (let c = 0; c < classes; c += 1) {
      const edge = state * classes + c;
      const viaSuffix = at(next, fallback * classes + c);
      const child = at(next, edge);
      if (child === 0) next[edge] = viaSuffix;
      else {
        suffix[child] = viaSuffix;
        queue.push(child);
      }
    }
  }
  return {
    classOf,
    classes,
    next: next.slice(0, states * classes),
    depth: depth.slice(0, states),
    matched: matched.slice(0, states),
  };
}

/** Index access that the compiler takes as defined; all indexes here are in range by construction. */
function at(array: ArrayLike<number>, index: number): number {
  return array[index] ?? 0;
}
