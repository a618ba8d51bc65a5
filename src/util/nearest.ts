/**
 * The candidate most like `word`, for "did you mean": upper case, `-`, `_` and `.` count as equal, up to a third of the
 * letters (at least one) may differ. Null where nothing is near. Of equals the first wins.
 */
export function nearest(word: string, candidates: Iterable<string>): string | null {
  const wanted = fold(word);
  let best: string | null = null;
  let limit = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, fold(candidate), limit);
    if (distance < limit) {
      best = candidate;
      limit = distance;
      if (distance === 0) break;
    }
  }
  return best;
}

/** Long words are cut: they are compared to help a person, and the work grows with the product of the lengths. */
function fold(word: string): string {
  return word.slice(0, 64).toLowerCase().replace(/[-.]/g, "_");
}

/** Edits (insert, delete, change, swap of neighbours) from `a` to `b`; `limit` where it is that or more. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    let smallest = row;
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, at(beforeLast, column - 2) + 1);
      }
      current.push(cost);
      smallest = Math.min(smallest, cost);
    }
    if (smallest >= limit) return limit;
    beforeLast = last;
    last = current;
  }
  return Math.min(at(last, b.length), limit);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
