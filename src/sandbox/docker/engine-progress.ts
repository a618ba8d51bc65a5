import { z } from "zod";
import { boundedLines } from "./bounded-lines.ts";

/** What an engine says while it builds, pulls or imports: one JSON object a line. */
const messageSchema = z.object({
  stream: z.string().optional(),
  status: z.string().optional(),
  id: z.string().optional(),
  error: z.string().optional(),
});

export interface ProgressOutcome {
  /** null for success. */
  readonly error: string | null;
  /** The last lines said. */
  readonly tail: readonly string[];
}

const MAX_OPEN_CHARS = 1024 * 1024;

/**
 * Reads an engine's progress stream to its end. Gives up, and closes the stream, after `stallMs` without a byte: a registry
 * behind a firewall that drops packets must not hold the user for minutes.
 */
export async function followProgress(
  stream: NodeJS.ReadableStream,
  options: { stallMs: number; onLine?: (line: string) => void },
): Promise<ProgressOutcome> {
  const lines = boundedLines(20);
  let error: string | null = null;
  const take = (line: string) => {
    const message = parseMessage(line);
    if (message === null) return;
    const text = message.stream ?? [message.id, message.status].filter(Boolean).join(" ");
    lines.push(`${text.trimEnd()}\n`);
    if (message.error !== undefined) error = message.error;
    for (const part of text.split("\n")) if (part.trim() !== "") options.onLine?.(part.trimEnd());
  };
  const failure = await readLines(stream, options.stallMs, take);
  return { error: error ?? failure, tail: lines.tail() };
}

/** Resolves with what broke the stream, or null at its end; never rejects and never stays pending. */
function readLines(
  stream: NodeJS.ReadableStream,
  stallMs: number,
  take: (line: string) => void,
): Promise<string | null> {
  return new Promise((resolve) => {
    let open = "";
    const settle = (failure: string | null) => {
      clearTimeout(stall);
      resolve(failure);
    };
    const stall = setTimeout(() => {
      settle(`the engine said nothing for ${stallMs / 1000} s`);
      (stream as NodeJS.ReadableStream & { destroy?: () => void }).destroy?.();
    }, stallMs);
    stream.on("data", (bytes: Buffer) => {
      stall.refresh();
      const parts = (open + bytes.toString("utf8")).split("\n");
      open = (parts.pop() ?? "").slice(0, MAX_OPEN_CHARS);
      for (const part of parts) take(part);
    });
    stream.once("end", () => {
      take(open);
      settle(null);
    });
    stream.once("error", (cause: Error) => settle(cause.message));
    stream.once("close", () => settle("the engine closed the connection"));
  });
}

function parseMessage(line: string): z.infer<typeof messageSchema> | null {
  try {
    return messageSchema.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}
