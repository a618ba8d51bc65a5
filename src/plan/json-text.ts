import { err, ok, type Result } from "../util/result.ts";

export interface JsonTextProblem {
  readonly offset: number;
  readonly message: string;
  /** Where a key was given twice, the way to it. */
  readonly path?: readonly PropertyKey[];
}

/** A parsed text: its top-level values (one, or several one after the other where that is allowed) and where each part lies. */
export interface JsonText {
  readonly values: readonly { readonly value: unknown; readonly offset: number }[];
  /** Offset of the member or item at `path` below the value at `index`, or of the nearest thing around it. */
  offsetOf(index: number, path: readonly PropertyKey[]): number;
}

/** Deeper nesting has no use in a plan and would end in a stack overflow. */
export const MAX_DEPTH = 64;
const SPACE = /[ \t\n\r]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /[A-Za-z_$'][\w$']*/y;
const LITERALS = new Map<string, unknown>([
  ["true", true],
  ["false", false],
  ["null", null],
]);

class Refused extends Error {
  readonly problem: JsonTextProblem;
  constructor(problem: JsonTextProblem) {
    super(problem.message);
    this.problem = problem;
  }
}

/**
 * Reads strict JSON (RFC 8259). Unlike `JSON.parse` it refuses a key given twice, which would drop the first in silence, and it knows
 * where everything lies, so that a message can name the line. `many` allows several values one after the other (as `jq` prints them).
 */
export function parseJsonText(text: string, options: { many: boolean }): Result<JsonText, JsonTextProblem> {
  const offsets = new Map<object, ReadonlyMap<PropertyKey, number>>();
  const values: { value: unknown; offset: number }[] = [];
  const reader = createReader(text, offsets);
  try {
    do {
      reader.skipSpace();
      const offset = reader.offset();
      values.push({ value: reader.readValue([]), offset });
      reader.skipSpace();
    } while (options.many && !reader.atEnd());
    if (!reader.atEnd()) reader.refuse("nothing may follow the value");
  } catch (error) {
    if (error instanceof Refused) return err(error.problem);
    throw error;
  }
  return ok({
    values,
    offsetOf(index, path) {
      let here = values[index]?.value;
      let offset = values[index]?.offset ?? 0;
      for (const step of path) {
        if (typeof here !== "object" || here === null) break;
        const next = offsets.get(here)?.get(step);
        if (next === undefined) break;
        offset = next;
        here = (here as Record<PropertyKey, unknown>)[step];
      }
      return offset;
    },
  });
}

/** A recursive-descent reader over `text`; fills `offsets` for each list and map. */
function createReader(text: string, offsets: Map<object, ReadonlyMap<PropertyKey, number>>) {
  let position = 0;

  function refuse(message: string, at = position): never {
    throw new Refused({ offset: at, message });
  }
  function match(pattern: RegExp): string | null {
    pattern.lastIndex = position;
    const found = pattern.exec(text);
    if (found === null) return null;
    position = pattern.lastIndex;
    return found[0];
  }
  function skipSpace(): void {
    match(SPACE);
  }
  function expect(char: string, what: string): void {
    if (text[position] !== char) refuse(what);
    position += 1;
  }
  /** Scanned by hand: a pattern with a repeated choice runs out of stack on a string of megabytes. */
  function readString(): string {
    const start = position;
    let escaped = false;
    position += 1;
    for (let char = text[position]; char !== '"'; char = text[position]) {
      if (char === undefined) return refuse("a string does not end", start);
      if (char === "\n") return refuse("a string must end on its line; write a line end as \\n", start);
      if (char < " ") return refuse("a string holds a bare control character; write it as \\uXXXX");
      if (char === "\\") {
        if (match(ESCAPE) === null) {
          return refuse('an unknown escape; there are \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX');
        }
        escaped = true;
      } else position += 1;
    }
    position += 1;
    const raw = text.slice(start, position);
    return escaped ? String(JSON.parse(raw)) : raw.slice(1, -1);
  }
  function readMap(path: readonly PropertyKey[]): object {
    const map: Record<string, unknown> = {};
    const places = new Map<PropertyKey, number>();
    offsets.set(map, places);
    position += 1;
    skipSpace();
    if (text[position] === "}") {
      position += 1;
      return map;
    }
    for (;;) {
      const start = position;
      if (text[position] !== '"')
        refuse(text[position] === "}" ? "a comma before }" : "a key must be in double quotes");
      const key = readString();
      if (places.has(key)) {
        throw new Refused({ offset: start, message: "is given twice", path: [...path, key] });
      }
      places.set(key, start);
      skipSpace();
      expect(":", `a colon must follow the key ${JSON.stringify(key.slice(0, 60))}`);
      skipSpace();
      // Assigning `__proto__` would change the map's prototype instead of adding a member.
      Object.defineProperty(map, key, {
        value: readValue([...path, key]),
        enumerable: true,
        writable: true,
        configurable: true,
      });
      skipSpace();
      if (text[position] === "}") break;
      expect(",", "a comma or } must follow");
      skipSpace();
    }
    position += 1;
    return map;
  }
  function readList(path: readonly PropertyKey[]): unknown[] {
    const list: unknown[] = [];
    const places = new Map<PropertyKey, number>();
    offsets.set(list, places);
    position += 1;
    skipSpace();
    if (text[position] === "]") {
      position += 1;
      return list;
    }
    for (;;) {
      if (text[position] === "]") refuse("a comma before ]");
      places.set(list.length, position);
      list.push(readValue([...path, list.length]));
      skipSpace();
      if (text[position] === "]") break;
      expect(",", "a comma or ] must follow");
      skipSpace();
    }
    position += 1;
    return list;
  }
  function readValue(path: readonly PropertyKey[]): unknown {
    if (path.length > MAX_DEPTH) refuse(`nested more than ${MAX_DEPTH} deep`);
    const char = text[position];
    if (char === "{") return readMap(path);
    if (char === "[") return readList(path);
    if (char === '"') return readString();
    const start = position;
    const number = match(NUMBER);
    if (number !== null) return Number(number);
    const word = match(WORD);
    if (word !== null && LITERALS.has(word)) return LITERALS.get(word);
    return refuse(
      word === null
        ? char === undefined
          ? "the text ends too early"
          : `${JSON.stringify(char)} is not JSON`
        : `${JSON.stringify(word.slice(0, 60))} is not JSON; text needs double quotes`,
      start,
    );
  }
  return { skipSpace, readValue, refuse, offset: () => position, atEnd: () => position >= text.length };
}
