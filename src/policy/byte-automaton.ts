/**
 * Finds many byte strings in one pass (Aho–Corasick), as a table over byte classes: bytes that occur in no pattern share class 0,
 * so the table stays small although the input is arbitrary bytes. Immutable: one automaton serves any number of streams.
 *
 * Two groups of patterns. *Wholes* are what is looked for: for them it is known how far back one may have begun. *Anchors* only
 * begin something that others follow further; where they end is told, by their number.
 */
export interface ByteAutomaton {
  /** Class of each byte value. */
  readonly classOf: Uint16Array;
  readonly classes: number;
  /**
   * `next[row + class]`: the row after that byte, where a row is a state times `classes`; row 0 is the root. Negative where something
   * ends there: `matched` or `anchors` says what.
   */
  readonly next: Int32Array;
  /** Length of the longest text that a whole may begin with here: how many bytes back a match could still begin. */
  readonly depth: Int32Array;
  /** Length of the longest whole that ends in this state; 0 for none. */
  readonly matched: Int32Array;
  /** Numbers of the anchors that end in a state. */
  readonly anchors: ReadonlyMap<number, readonly number[]>;
}

/** Compiles patterns, none of them empty. Cost and memory follow their total length. */
export function compileAutomaton(
  wholes: readonly Uint8Array[],
  anchors: readonly Uint8Array[] = [],
): ByteAutomaton {
  const patterns = [...wholes, ...anchors];
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
  const anchorsAt = new Map<number, number[]>();
  let states = 1;

  for (const [index, pattern] of patterns.entries()) {
    const isWhole = index < wholes.length;
    let state = 0;
    for (const [before, byte] of pattern.entries()) {
      const edge = state * classes + at(classOf, byte);
      if (next[edge] === 0) next[edge] = states++;
      state = at(next, edge);
      if (isWhole) depth[state] = before + 1;
    }
    if (isWhole) matched[state] = Math.max(at(matched, state), pattern.length);
    else anchorsAt.set(state, [...(anchorsAt.get(state) ?? []), index - wholes.length]);
  }

  // Breadth first, so that the state of the longest proper suffix is complete before it is asked.
  const suffix = new Int32Array(states);
  const queue: number[] = [];
  for (let c = 0; c < classes; c += 1) if (at(next, c) !== 0) queue.push(at(next, c));
  for (let head = 0; head < queue.length; head += 1) {
    const state = at(queue, head);
    const fallback = at(suffix, state);
    matched[state] = Math.max(at(matched, state), at(matched, fallback));
    depth[state] = Math.max(at(depth, state), at(depth, fallback));
    const inherited = anchorsAt.get(fallback);
    if (inherited !== undefined) anchorsAt.set(state, [...(anchorsAt.get(state) ?? []), ...inherited]);
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
  const rows = new Int32Array(states * classes);
  for (let edge = 0; edge < rows.length; edge += 1) {
    const state = at(next, edge);
    const isEnd = at(matched, state) > 0 || anchorsAt.has(state);
    rows[edge] = isEnd ? -state * classes : state * classes;
  }
  return {
    classOf,
    classes,
    next: rows,
    depth: depth.slice(0, states),
    matched: matched.slice(0, states),
    anchors: anchorsAt,
  };
}

/** Index access that the compiler takes as defined; all indexes here are in range by construction. */
function at(array: ArrayLike<number>, index: number): number {
  return array[index] ?? 0;
}
