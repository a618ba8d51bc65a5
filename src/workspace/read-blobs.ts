import { gitFailed, spawnGit } from "./git.ts";

/** Takes one blob as it streams by. */
export interface BlobSink {
  push(chunk: Buffer): void;
  end(): void;
}

/** Reads blobs off one git process, in the order asked. `open` is told the size first; a sink need not look at everything. */
export async function readBlobs(
  gitDir: string,
  oids: readonly string[],
  open: (index: number, size: number) => BlobSink,
): Promise<void> {
  if (oids.length === 0) return;
  const args = ["cat-file", "--batch", "--buffer"];
  const child = spawnGit(gitDir, args);
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    if (stderr.length < 4096) stderr += chunk.toString("utf8");
  });
  child.stdin.end(oids.map((oid) => `${oid}\n`).join(""));
  let index = -1;
  let header = "";
  let sink: BlobSink | null = null;
  /** Content still to come of the open blob; one more byte, a line end, stands behind it. */
  let left = 0;
  try {
    for await (const chunk of child.stdout) {
      let rest = chunk as Buffer;
      while (rest.length > 0) {
        if (sink === null) {
          const end = rest.indexOf(0x0a);
          header += rest.subarray(0, end === -1 ? rest.length : end).toString("latin1");
          rest = end === -1 ? rest.subarray(rest.length) : rest.subarray(end + 1);
          if (end === -1) continue;
          const size = /^[0-9a-f]+ blob (\d+)$/.exec(header)?.[1];
          if (size === undefined) throw gitFailed(args, { exitCode: 0, stderr: header }, gitDir);
          header = "";
          index += 1;
          left = Number(size);
          sink = open(index, left);
          continue;
        }
        const piece = rest.subarray(0, left);
        if (piece.length > 0) sink.push(piece);
        left -= piece.length;
        rest = rest.subarray(piece.length);
        if (left > 0 || rest.length === 0) continue;
        sink.end();
        sink = null;
        rest = rest.subarray(1);
      }
    }
  } finally {
    child.process.kill("SIGKILL");
  }
  if (index !== oids.length - 1 || sink !== null) {
    throw gitFailed(args, { exitCode: await child.ended, stderr }, gitDir);
  }
}
