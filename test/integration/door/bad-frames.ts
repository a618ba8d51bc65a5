/** Frames that no honest agent sends, by number: the same number gives the same bytes. */
export function badFrame(index: number): Buffer {
  const random = createRandom(index);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const bytes = Buffer.from(
    Array.from({ length: 1 + Math.floor(random() * 200) }, () => Math.floor(random() * 256)),
  );
  // A newline inside would make two frames of one.
  const line = Buffer.from(bytes.map((byte) => (byte === 0x0a || byte === 0x0d ? 0x20 : byte)));
  const method = pick([
    "ping",
    "get_file",
    "status",
    "__proto__",
    "constructor",
    "put_artifact",
    "\\u0000",
    "x".repeat(128),
  ]);
  const value = pick([
    "1e999",
    "null",
    "[]",
    "{}",
    '"\\ud800"',
    "-0",
    '"../../etc/passwd"',
    '{"__proto__":{"a":1}}',
    `"${"é".repeat(50)}"`,
    `${"[".repeat(40)}${"]".repeat(40)}`,
  ]);
  const text = pick([
    `{"jsonrpc":"2.0","id":${value},"method":"${method}","params":{"name":${value},"bad":${value}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"get_file","params":{"task_id":${value},"path":${value}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${value}`,
    `{"jsonrpc":"1.0","id":${value}}`,
    `[${value}]`,
    value,
    "{",
    "}",
  ]);
  // "!" keeps a frame of nothing but spaces from being no frame at all.
  return random() < 0.5 ? Buffer.concat([Buffer.from("!"), line]) : Buffer.from(text);
}

/** A small generator with a seed (mulberry32's shape), so that a failure can be seen again. */
function createRandom(seed: number): () => number {
  let state = (seed + 1) * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
