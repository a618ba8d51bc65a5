import { constants, type Dirent } from "node:fs";
import { type FileHandle, lstat, open, readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { formatBytes } from "../util/bytes.ts";
import { err, ok, type Result } from "../util/result.ts";
import type { PlanProblem } from "./plan-problem.ts";
import type { TextFormat } from "./source-text.ts";

/** Largest plan or configuration file. */
export const MAX_FILE_BYTES = 16 * 1024 ** 2;
const MAX_FOLDER_FILES = 100_000;

/** A file to read: `file` as a person would name it. */
export interface InputFile {
  readonly file: string;
  readonly path: string;
  /** Why it will not be opened: it is seen already that it is no plain file. */
  readonly refused?: string;
}

export const STDIN_NAME = "<stdin>";
const CONFIG_NAMES: ReadonlySet<string> = new Set(["bulkhead.yaml", "bulkhead.yml", "bulkhead.json"]);

/** The files behind one argument: itself, or those of the folder in the order of their names. */
export async function listInput(
  input: string,
  cwd: string,
): Promise<Result<readonly InputFile[], readonly PlanProblem[]>> {
  const path = resolve(cwd, input);
  const found = await statOf(path);
  if (!found.ok) return err([refusal(input, found.error)]);
  if (!found.value.isDirectory()) return ok([{ file: input, path }]);
  let entries: readonly Dirent[];
  try {
    entries = await readdir(path, { withFileTypes: true });
  } catch (error) {
    return err([refusal(input, explainErrno(error))]);
  }
  const chosen = entries
    .filter(({ name }) => /\.(json|ya?ml)$/.test(name) && !name.startsWith(".") && !CONFIG_NAMES.has(name))
    .filter((entry) => !entry.isDirectory())
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (chosen.length === 0) return err([refusal(input, "the folder holds no *.json, *.yaml or *.yml")]);
  if (chosen.length > MAX_FOLDER_FILES) {
    return err([
      refusal(input, `the folder holds ${chosen.length} task files; ${MAX_FOLDER_FILES} are allowed`),
    ]);
  }
  return ok(
    chosen.map((entry) => {
      const file = { file: join(input, entry.name), path: join(path, entry.name) };
      const refused = explainKind(entry);
      return refused === null ? file : { ...file, refused };
    }),
  );
}

/** Reads a file as UTF-8, refusing what is no plain file of a sensible size. Never waits on a fifo, never follows a link. */
export async function readInputFile(input: InputFile): Promise<Result<string, PlanProblem>> {
  const { file, path, refused } = input;
  if (refused !== undefined) return err(refusal(file, refused));
  let handle: FileHandle | null = null;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = await handle.stat();
    if (!stat.isFile()) return err(refusal(file, explainKind(stat) ?? "is a folder"));
    if (stat.size > MAX_FILE_BYTES) return err(tooLarge(file, formatBytes(stat.size)));
    // The size was true a moment ago: one byte more than it is asked for, to see whether it still is.
    const buffer = Buffer.allocUnsafe(Math.min(MAX_FILE_BYTES, stat.size) + 1);
    let bytes = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, bytes, buffer.length - bytes, bytes);
      bytes += bytesRead;
      if (bytesRead === 0) break;
      if (bytes === buffer.length) return err(refusal(file, "grew while it was read"));
    }
    return decode(file, buffer.subarray(0, bytes));
  } catch (error) {
    return err(refusal(file, explainErrno(error)));
  } finally {
    await handle?.close();
  }
}

/** Reads standard input to its end, within the same limit. */
export async function readStdin(stdin: NodeJS.ReadableStream): Promise<Result<string, PlanProblem>> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    const buffer = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    bytes += buffer.length;
    if (bytes > MAX_FILE_BYTES) return err(tooLarge(STDIN_NAME, `more than ${formatBytes(MAX_FILE_BYTES)}`));
    chunks.push(buffer);
  }
  return decode(STDIN_NAME, Buffer.concat(chunks));
}

/** The format by the name of a file; stdin and odd names are looked at. */
export function formatOf(file: string): TextFormat {
  if (file.endsWith(".json")) return "json";
  return /\.ya?ml$/.test(file) ? "yaml" : "auto";
}

/** What a file or folder of a plan may be: `Stats` and `Dirent` alike. */
interface FileKind {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

/** Null for a plain file or a folder. */
function explainKind(kind: FileKind): string | null {
  if (kind.isSymbolicLink()) return "is a symbolic link; name the file or folder it points to";
  return kind.isFile() || kind.isDirectory() ? null : "is not a regular file; pipe it in and name it -";
}

async function statOf(path: string): Promise<Result<FileKind, string>> {
  try {
    const stat = await lstat(path);
    const refused = explainKind(stat);
    return refused === null ? ok(stat) : err(refused);
  } catch (error) {
    return err(explainErrno(error));
  }
}

function decode(file: string, bytes: Buffer): Result<string, PlanProblem> {
  try {
    // A byte order mark is dropped by the decoder.
    return ok(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    // The decoder's only complaint is malformed input.
    return err(refusal(file, "is not UTF-8 text"));
  }
}

function tooLarge(file: string, size: string): PlanProblem {
  return {
    ...refusal(file, `is ${size}`),
    allowed: `at most ${formatBytes(MAX_FILE_BYTES)} a file; split it`,
  };
}

function refusal(file: string, message: string): PlanProblem {
  return { file, task: null, field: null, value: undefined, message };
}

const ERRNO_TEXTS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  ENOTDIR: "there is no such file or folder",
  EACCES: "may not be read by this user",
  EPERM: "may not be read by this user",
  ELOOP: "is a symbolic link; name the file or folder it points to",
  EISDIR: "is a folder",
  ENAMETOOLONG: "the name is too long",
};

function explainErrno(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "") throw error;
  return ERRNO_TEXTS[code] ?? `cannot be read (${code})`;
}
