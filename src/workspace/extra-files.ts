import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";
import { RunnerError } from "../model/runner-error.ts";
import { matcher } from "./filter-files.ts";
import { gitFailed } from "./git.ts";
import { inRepository } from "./in-repository.ts";
import { splitNul } from "./list-tree.ts";
import { joinPath, pathOfKey, showPath, utf8Path } from "./path-bytes.ts";
import { personFiles } from "./person-files.ts";

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

/** What names extra files: `files.extra` of a task, or a `.worktreeinclude`. */
export interface ExtraSource {
  readonly patterns: readonly string[];
  /** Takes ignored files only, not those that are merely untracked. */
  readonly isIgnoredOnly: boolean;
  /** For messages. */
  readonly name: string;
}

/**
 * Reads the ignored and untracked files that the patterns (gitignore syntax) of the sources name (row P4). Held in memory, hence the
 * limits: this is for `.env` files and the like; dependencies belong into `prepare:`.
 */
export async function readExtraFiles(
  repository: string,
  sources: readonly ExtraSource[],
  objectFormat: "sha1" | "sha256",
): Promise<{ files: ExtraFile[]; warnings: string[] }> {
  const chosen = new Set<string>();
  const warnings: string[] = [];
  const names = sources.map(({ name }) => name).join(", ");
  for (const source of sources) {
    if (source.patterns.length === 0) continue;
    const paths = await listExtraPaths(repository, source);
    for (const path of paths) chosen.add(path);
    warnings.push(...unmatched(repository, source, paths));
  }
  if (chosen.size > MAX_FILES) throw tooMuch(names, `${chosen.size} files`, `${MAX_FILES} files`);
  const files: ExtraFile[] = [];
  let totalBytes = 0;
  for (const path of [...chosen].sort((a, b) => (a < b ? -1 : 1))) {
    const file = await readExtraFile(repository, path, MAX_TOTAL_BYTES - totalBytes, objectFormat, names);
    if (file === null) continue;
    totalBytes += file.content.length;
    files.push(file);
  }
  return { files, warnings };
}

async function listExtraPaths(repository: string, source: ExtraSource): Promise<string[]> {
  const args = [
    "ls-files",
    "-z",
    "--others",
    "--ignored",
    ...source.patterns.map((pattern) => `--exclude=${pattern}`),
  ];
  const output = await inRepository(repository, args);
  if (output.exitCode !== 0) throw gitFailed(args, output, repository);
  // A nested repository is listed as a directory, with a slash at its end; it is not read.
  const paths = splitNul(output.stdout).filter((path) => !path.endsWith("/"));
  return source.isIgnoredOnly ? onlyIgnored(repository, paths) : paths;
}

async function onlyIgnored(repository: string, paths: readonly string[]): Promise<string[]> {
  if (paths.length === 0) return [];
  const args = [...(await personFiles(repository)), "check-ignore", "-z", "--stdin"];
  const input = Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1");
  const output = await inRepository(repository, args, { input });
  // 1: none is ignored.
  if (output.exitCode > 1) throw gitFailed(args, output, repository);
  return splitNul(output.stdout);
}

function unmatched(repository: string, source: ExtraSource, paths: readonly string[]): string[] {
  const missing = source.patterns.filter((pattern) => {
    if (pattern.startsWith("!")) return false;
    const matches = matcher([pattern]);
    return !paths.some((path) => matches(utf8Path(pathOfKey(path)) ?? path));
  });
  const what = source.isIgnoredOnly ? "ignored file" : "ignored or untracked file";
  return missing.map((pattern) => `${source.name}: "${pattern}" matches no ${what} in ${repository}`);
}

async function readExtraFile(
  repository: string,
  path: string,
  maxBytes: number,
  objectFormat: string,
  source: string,
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
      throw tooMuch(source, showPath(pathOfKey(path)), `${MAX_TOTAL_BYTES} bytes in all`);
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

function tooMuch(source: string, what: string, limit: string): RunnerError {
  return new RunnerError("config-invalid", `${source} takes too much: ${what}, the limit is ${limit}`, {
    data: { source, limit },
    hint: "Name single files; install dependencies with `prepare:`.",
  });
}
