/** Reads lines off a stream one at a time; null at its end. */
export interface LineReader {
  next(): Promise<string | null>;
}

/** Makes a reader of latin1 lines. A line that is not asked for yet stays in memory: use it where each line answers a question. */
export function createLineReader(stream: NodeJS.ReadableStream): LineReader {
  const lines: string[] = [];
  const waiting: Array<(line: string | null) => void> = [];
  let rest = "";
  let ended = false;
  function finish(): void {
    ended = true;
    for (const resolve of waiting.splice(0)) resolve(null);
  }
  stream.on("data", (chunk: Buffer) => {
    const parts = (rest + chunk.toString("latin1")).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) {
      const resolve = waiting.shift();
      if (resolve) resolve(line);
      else lines.push(line);
    }
  });
  stream.once("end", finish);
  stream.once("close", finish);
  stream.once("error", finish);
  return {
    next() {
      const line = lines.shift();
      if (line !== undefined) return Promise.resolve(line);
      if (ended) return Promise.resolve(null);
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}
