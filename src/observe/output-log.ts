/**
 * The output of one attempt on disk: redacted, and bounded however much is written (rows A9, P8).
 *
 * Theory of operation. Half of the limit is the head, `output.log` itself. What comes after goes to segments of an eighth of the
 * limit each, `output.log.tail-<head size>-<offset>`, named by where in the whole output they begin; when there would be a fifth,
 * the oldest is removed. `close` appends a mark and the segments to `output.log`, then removes them: in the end there is one file
 * for people. Everything is written by appending, so after a crash head and segments are there as they are: `read-output-log.ts`
 * reads them in order, and opening the log again takes back a half-done joining and goes on behind the last byte.
 *
 * One loop writes whatever has queued up; producers wait (back-pressure) while more than a few chunks are queued. A disk that
 * refuses to take more (full, read-only) does not stop the attempt: the rest is dropped, counted, and told by `close`.
 */
import { StringDecoder } from "node:string_decoder";
import { openBoundedFile } from "./bounded-file.ts";
import { createRedactor, type Redactor } from "./redact.ts";

export type OutputStream = "stdout" | "stderr";

export interface OutputLogOptions {
  /** What the log may take on disk; 64 MiB unless set, at least 1 KiB. */
  readonly maxBytes?: number;
  readonly secrets?: readonly string[];
  /** Redacted text as it comes, characters whole. Called before it is on disk; hostile: sanitise before showing. */
  readonly onText?: (stream: OutputStream, text: string) => void;
}

export interface OutputLogSummary {
  /** Redacted bytes that came in all. */
  readonly bytes: number;
  readonly cutBytes: number;
  /** Why the end is missing, where the disk refused to take it. */
  readonly error: string | null;
}

export interface OutputLog {
  /** Resolves at once while there is room in the queue, else when there is again. Never rejects. */
  write(stream: OutputStream, bytes: Uint8Array): Promise<void>;
  /** Gives out what redaction held back, writes everything, makes it one file. Safe to repeat. Never rejects. */
  close(): Promise<OutputLogSummary>;
  readonly warnings: readonly string[];
}

export const DEFAULT_OUTPUT_BYTES = 64 * 1024 ** 2;
const MAX_QUEUED_BYTES = 1024 ** 2;

/** Opens the log at `path` (its directory exists), going on where an earlier process stopped. */
export async function openOutputLog(path: string, options: OutputLogOptions = {}): Promise<OutputLog> {
  const maxBytes = Math.max(1024, options.maxBytes ?? DEFAULT_OUTPUT_BYTES);
  const writer = await openBoundedFile(path, maxBytes);
  const streams = {
    stdout: createChannel("stdout", options),
    stderr: createChannel("stderr", options),
  };
  let queue: Buffer[] = [];
  let queuedBytes = 0;
  let total = 0;
  let error: string | null = null;
  let writing: Promise<void> | null = null;
  let closing: Promise<OutputLogSummary> | null = null;

  const drain = async (): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue;
      queue = [];
      try {
        if (error === null) for (const bytes of batch) await writer.append(bytes);
      } catch (cause) {
        error = cause instanceof Error ? cause.message : String(cause);
      }
      for (const bytes of batch) queuedBytes -= bytes.length;
    }
    writing = null;
  };
  const enqueue = (bytes: Buffer): void => {
    if (bytes.length === 0) return;
    queue.push(bytes);
    queuedBytes += bytes.length;
    total += bytes.length;
    writing ??= drain();
  };
  const finish = async (): Promise<OutputLogSummary> => {
    enqueue(streams.stdout.end());
    enqueue(streams.stderr.end());
    await writing;
    try {
      await writer.finish();
    } catch (cause) {
      error ??= cause instanceof Error ? cause.message : String(cause);
    }
    return { bytes: total, cutBytes: writer.cutBytes, error };
  };

  return {
    async write(stream, bytes) {
      if (closing !== null) return;
      enqueue(streams[stream].push(bytes));
      // Waits for the whole queue, not for this chunk: a slow disk slows the producer down, a quick one is never waited for.
      if (queuedBytes > MAX_QUEUED_BYTES) await writing;
    },
    close() {
      closing ??= finish();
      return closing;
    },
    warnings: streams.stdout.warnings,
  };
}

interface Channel {
  push(bytes: Uint8Array): Buffer;
  end(): Buffer;
  readonly warnings: readonly string[];
}

/** One stream's redaction and decoding: a secret or a character may be split by the other stream's output. */
function createChannel(stream: OutputStream, options: OutputLogOptions): Channel {
  const redactor: Redactor = createRedactor(options.secrets ?? []);
  const decoder = new StringDecoder("utf8");
  const tell = (text: string): void => {
    if (text !== "") options.onText?.(stream, text);
  };
  return {
    push(bytes) {
      // Copied once here: the caller may use its memory again while the bytes wait in the queue.
      const safe = Buffer.from(redactor.push(bytes));
      tell(decoder.write(safe));
      return safe;
    },
    end() {
      const rest = Buffer.from(redactor.end());
      tell(decoder.write(rest) + decoder.end());
      return rest;
    },
    warnings: redactor.warnings,
  };
}
