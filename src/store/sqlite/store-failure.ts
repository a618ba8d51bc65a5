import { RunnerError } from "../../model/runner-error.ts";

/** SQLite's primary result codes that have a next step of their own. */
const FULL = 13;
const CORRUPT = 11;
const NOT_A_DATABASE = 26;
const BUSY = 5;
const LOCKED = 6;
const READ_ONLY = 8;
const CANNOT_OPEN = 14;
const IO_ERROR = 10;

/** SQLite's primary result code (the extended one carries more in its upper bits), or null for an error of something else. */
export function sqliteCode(error: unknown): number | null {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return null;
  return error.errcode & 0xff;
}

/** Whether SQLite could not open or prepare the file with the rights this process has. */
export function isAccessDenied(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === CANNOT_OPEN || code === READ_ONLY;
}

/** Runs one step on the log; what SQLite throws comes out as RunnerError `store-failed` that names the file and the next step. */
export function guard<T>(path: string, doing: string, step: () => T): T {
  try {
    return step();
  } catch (cause) {
    throw cause instanceof RunnerError ? cause : storeFailure(path, doing, cause);
  }
}

/** Wraps what SQLite or the file system threw. */
export function storeFailure(path: string, doing: string, cause: unknown): RunnerError {
  const code = sqliteCode(cause);
  const detail = cause instanceof Error ? cause.message : String(cause);
  const hint = nextStep(code ?? codeOfErrno(cause));
  return new RunnerError("store-failed", `could not ${doing} the event log ${path}: ${detail}`, {
    cause,
    data: { path, sqliteCode: code },
    ...(hint === null ? {} : { hint }),
  });
}

/** What the file system refused before SQLite had a word. */
function codeOfErrno(cause: unknown): number | null {
  if (!(cause instanceof Error) || !("code" in cause)) return null;
  switch (cause.code) {
    case "ENOSPC":
    case "EDQUOT":
      return FULL;
    case "EACCES":
    case "EPERM":
    case "EROFS":
    case "ENOTDIR":
    case "EEXIST":
    case "ENOENT":
    case "EISDIR":
      return CANNOT_OPEN;
    case "EIO":
      return IO_ERROR;
    default:
      return null;
  }
}

function nextStep(code: number | null): string | null {
  switch (code) {
    case FULL:
      return "Free space on its file system; nothing of this append was written, and the log goes on as it was.";
    case CORRUPT:
    case NOT_A_DATABASE:
      return "Move the file away (keep it: it may be evidence) or restore it from a backup; a new log is begun when it is missing.";
    case BUSY:
    case LOCKED:
      return "Another process holds the log for writing; let it finish or end it.";
    case READ_ONLY:
    case CANNOT_OPEN:
      return "Check that the directory exists and that this user may read and write it and the file.";
    case IO_ERROR:
      return "The file system reports read or write errors; check the disk before going on.";
    default:
      return null;
  }
}
