/**
 * One `git fast-import` process: answers what a commit holds, takes blobs, and makes one commit.
 *
 * Theory of operation: fast-import reads nothing but the stream given here. It runs no hook and no filter, needs no index and no
 * working tree, and quoting makes every path data. Blobs come first, the commit last, so a result refused half-way leaves
 * unreachable blobs and no ref. Callers ask one question at a time: answers come in order on one pipe.
 */
import { once } from "node:events";
import type { RunnerError } from "../../model/runner-error.ts";
import { gitFailed, spawnGit } from "../git.ts";
import { pathOfKey, quotePath } from "../path-bytes.ts";
import type { OpenFile } from "./change-source.ts";
import { createLineReader } from "./line-reader.ts";

export interface TreeEntry {
  /** 040000 for a directory, 160000 for a submodule. */
  readonly mode: string;
  readonly oid: string;
}

export interface CommitRequest {
  readonly ref: string;
  readonly parent: string;
  readonly author: string;
  readonly committer: string;
  readonly message: Buffer;
  readonly deleted: readonly Buffer[];
  readonly entries: ReadonlyArray<{ readonly path: Buffer; readonly mode: string; readonly blob: string }>;
}

export interface FastImport {
  /** Whether another session, told how much is to come, would be faster. */
  suits(expectedBytes: number): boolean;
  /** What a commit has at a path (latin1 key; `""` is its root tree), or null. */
  lookup(commit: string, path: string): Promise<TreeEntry | null>;
  /** Writes a blob and returns its name within this session. */
  writeBytes(content: Buffer): Promise<string>;
  /** Writes a blob from an opened file. Null where the file gave fewer bytes than it has: nothing may be committed then. */
  writeFile(file: OpenFile): Promise<string | null>;
  /** Makes the commit; its id and tree. Where the tree is that of `unlessTree`, no ref stays and `commit` is null. */
  commit(request: CommitRequest, unlessTree: string): Promise<{ commit: string | null; tree: string }>;
  /** Ends the process; without `commit` before it, no ref was written. Safe to repeat. */
  close(): Promise<void>;
}

/** Bytes gathered before they are written to the pipe. */
const BATCH_BYTES = 256 * 1024;
/** git holds smaller blobs in memory and compares them line by line later; larger ones go straight through. */
const BIG_FILE = "core.bigFileThreshold=16m";
/** Results larger than this are stored as they are: deflating what is mostly binary takes longer than all the rest. */
const UNCOMPRESSED_BYTES = 64 * 1024 * 1024;

function importArguments(expectedBytes: number): string[] {
  const level = expectedBytes > UNCOMPRESSED_BYTES ? 0 : 1;
  const config = [BIG_FILE, `core.compression=${level}`, `pack.compression=${level}`].flatMap((entry) => [
    "-c",
    entry,
  ]);
  // Files in the order of their names make poor deltas of each other.
  return [...config, "fast-import", "--quiet", "--done", "--force", "--date-format=raw", "--depth=0"];
}

/** Starts the process. `close` MUST be called whatever happens. `expectedBytes`: how much it will be given, where that is known. */
export function openFastImport(gitDir: string, expectedBytes = 0): FastImport {
  const child = spawnGit(gitDir, importArguments(expectedBytes));
  const answers = createLineReader(child.stdout);
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    if (stderr.length < 4096) stderr += chunk.toString("utf8");
  });
  let batch: Buffer[] = [];
  let batchBytes = 0;
  let marks = 0;
  let closing: Promise<void> | undefined;

  async function failure(): Promise<RunnerError> {
    const exitCode = await child.ended;
    return gitFailed(["fast-import"], { exitCode, stderr }, gitDir);
  }

  async function flush(): Promise<void> {
    if (batch.length === 0) return;
    const bytes = batch.length === 1 && batch[0] ? batch[0] : Buffer.concat(batch, batchBytes);
    batch = [];
    batchBytes = 0;
    if (child.stdin.write(bytes)) return;
    // A process that died never drains its pipe.
    const stop = new AbortController();
    const drained = once(child.stdin, "drain", { signal: stop.signal }).then(() => true);
    drained.catch(() => undefined);
    const alive = await Promise.race([drained, child.ended.then(() => false)]);
    stop.abort();
    if (!alive) throw await failure();
  }

  async function put(content: Buffer | string): Promise<void> {
    const bytes = typeof content === "string" ? Buffer.from(content, "latin1") : content;
    batch.push(bytes);
    batchBytes += bytes.length;
    if (batchBytes >= BATCH_BYTES) await flush();
  }

  async function ask(question: string): Promise<string> {
    await put(question);
    await flush();
    const answer = await answers.next();
    if (answer === null) throw await failure();
    return answer;
  }

  async function lookup(commit: string, path: string): Promise<TreeEntry | null> {
    const answer = await ask(`ls ${commit} ${quotePath(pathOfKey(path))}\n`);
    const match = /^([0-7]{6}) [a-z]+ ([0-9a-f]+)\t/.exec(answer);
    return match?.[1] && match[2] ? { mode: match[1], oid: match[2] } : null;
  }

  function nextMark(): string {
    marks += 1;
    return `:${marks}`;
  }

  return {
    suits: (bytes) => bytes <= UNCOMPRESSED_BYTES || expectedBytes > UNCOMPRESSED_BYTES,
    lookup,
    async writeBytes(content) {
      const mark = nextMark();
      await put(`blob\nmark ${mark}\ndata ${content.length}\n`);
      await put(content);
      await put("\n");
      return mark;
    },
    async writeFile(file) {
      const mark = nextMark();
      await put(`blob\nmark ${mark}\ndata ${file.size}\n`);
      let missing = file.size;
      if (file.bytes) {
        missing -= file.bytes.length;
        await put(file.bytes);
      } else if (file.stream) {
        for await (const chunk of file.stream) {
          if (!Buffer.isBuffer(chunk)) continue;
          missing -= chunk.length;
          await put(chunk);
        }
      }
      // The length was announced: the process waits for it even where the commit will not be made.
      const isWhole = missing === 0;
      for (; missing > 0; missing -= Math.min(missing, BATCH_BYTES)) {
        await put(Buffer.alloc(Math.min(missing, BATCH_BYTES)));
      }
      await put("\n");
      return isWhole ? mark : null;
    },
    async commit(request, unlessTree) {
      const mark = nextMark();
      await put(`commit ${request.ref}\nmark ${mark}\nauthor ${request.author}\n`);
      await put(`committer ${request.committer}\ndata ${request.message.length}\n`);
      await put(request.message);
      await put(`\nfrom ${request.parent}\n`);
      // Deletions first: where a file became a directory, deleting it later would take the directory with it.
      for (const path of request.deleted) await put(`D ${quotePath(path)}\n`);
      for (const entry of request.entries)
        await put(`M ${entry.mode} ${entry.blob} ${quotePath(entry.path)}\n`);
      const commit = await ask(`\nget-mark ${mark}\n`);
      const tree = (await lookup(mark, ""))?.oid;
      if (tree === undefined) throw await failure();
      if (tree !== unlessTree) return { commit, tree };
      await put(`reset ${request.ref}\nfrom ${"0".repeat(request.parent.length)}\n\n`);
      return { commit: null, tree };
    },
    close() {
      closing ??= (async () => {
        await put("done\n");
        await flush();
        child.stdin.end();
        if ((await child.ended) !== 0) throw await failure();
      })();
      return closing;
    },
  };
}
