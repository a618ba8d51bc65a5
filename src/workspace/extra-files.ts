import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";
import { RunnerError } from "../model/runner-error.ts";
import { matcher } from "./filter-files.ts";
import { gitFailed } from "./git.ts";
import { splitNul } from "./list-tree.ts";
import { joinPath, pathOfKey, showPath, utf8Path } from "./path-bytes.ts";
import { inRepository } from "./repository-state.ts";

/** A file of the work tree that git does not track, as it was when it was read. */
export interface ExtraFile {
  /** One character per byte. */
  readonly path: string;
  readonly mode: "100644" | "100755" | "120000";
  readonly content: Buffer;
  readonly blob: string;
}

const MAX_FILES = 5_000;
const MAX_TOTAL_BYTES = 128 * 1024 ** 2;

/**
 * Reads the ignored and untracked files that `patterns` (gitignore syntax) name (row P4). Held in memory, hence the limits:
 * this is for `.env` files and the like; dependencies belong into `prepare:`.
 */
export async function readExtraFiles(
  repository: string,
  patterns: readonly string[],
  objectFormat: "sha1" | "sha256",
): Promise<{ files: ExtraFile[]; warnings: string[] }> {
  if (patterns.length === 0) return { files: [], warnings: [] };
  const args = [
    "ls-files",
    "-z",
    "--others",
    "--ignored",
    ...patterns.map((pattern) => `--exclude=${pattern}`),
  ];
  const output = await inRepository(repository, args);
  if (output.exitCode !== 0) throw gitFailed(args, output, repository);
  // A nested repository is listed as a directory, with a slash at its end; it is not read.
  const paths = splitNul(output.stdout).filter((path) => !path.endsWith("/"));
  if (paths.length > MAX_FILES) throw tooMuch(`${paths.length} files`, `${MAX_FILES} files`, patterns);
  const files: ExtraFile[] = [];
  let totalBytes = 0;
  for (const path of paths) {
    const file = await readExtraFile(repository, path, MAX_TOTAL_BYTES - totalBytes, objectFormat, patterns);
    if (file === null) continue;
    totalBytes += file.content.length;
    files.push(file);
  }
  const unmatched = patterns.filter((pattern) => {
    const matches = matcher([pattern]);
    return (
      !pattern.startsWith("!") && !files.some((file) => matches(utf8Path(pathOfKey(file.path)) ?? file.path))
    );
  });
  const warnings = unmatched.map(
    (pattern) => `files.extra: "${pattern}" matches no ignored or untracked file in ${repository}`,
  );
  return { files, warnings };
}

async function readExtraFile(
  repository: string,
  path: string,
  maxBytes: number,
  objectFormat: string,
  patterns: readonly string[],
): Promise<ExtraFile | null> {
  const full = joinPath(Buffer.from(repository), pathOfKey(path));
  const found = await lstat(full);
  let content: Buffer;
  let mode: ExtraFile["mode"];
  if (found.isSymbolicLink()) {
    content = await readlink(full, { encoding: "buffer" });
    mode = "120000";
  } else if (found.isFile()) {
    if (found.size > maxBytes)
      throw tooMuch(showPath(pathOfKey(path)), `${MAX_TOTAL_BYTES} bytes in all`, patterns);
    const handle = await open(full, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      content = await handle.readFile();
    } finally {
      await handle.close();
    }
    mode = found.mode & 0o100 ? "100755" : "100644";
  } else {
    return null;
  }
  const blob = createHash(objectFormat).update(`blob ${content.length}\0`).update(content).digest("hex");
  return { path, mode, content, blob };
}

function tooMuch(what: string, limit: string, patterns: readonly string[]): RunnerError {
  return new RunnerError("config-invalid", `files.extra takes too much: ${what}, the limit is ${limit}`, {
    data: { patterns, limit },
    hint: "Name single files; install dependencies with `prepare:`.",
  });
}
