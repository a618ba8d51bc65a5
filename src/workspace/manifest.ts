import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { pathOfKey, utf8Path } from "./path-bytes.ts";

/** One file of a snapshot. */
export interface ManifestFile {
  readonly path: string;
  readonly mode: string;
  readonly blob: string;
  readonly size: number;
  /** Not in the commit: brought in from the work tree by `files.extra`. */
  readonly untracked?: boolean;
}

const FILES_PER_CHUNK = 500;

/**
 * Writes `workspace_manifest.json` (row A3): `{ commit, files: [{ path, mode, blob, size }] }`, one file a line, streamed.
 * `path` of the input has one character per byte; a path that is not UTF-8 is written as `pathBase64` in place of `path`.
 */
export async function writeManifest(
  destination: string,
  commit: string,
  files: readonly ManifestFile[],
): Promise<void> {
  await pipeline(Readable.from(chunks(commit, files)), createWriteStream(destination, { mode: 0o644 }));
}

function* chunks(commit: string, files: readonly ManifestFile[]): Generator<string> {
  yield `{"commit":${JSON.stringify(commit)},"files":[`;
  for (let at = 0; at < files.length; at += FILES_PER_CHUNK) {
    const lines = files.slice(at, at + FILES_PER_CHUNK).map((file) => JSON.stringify(toRecord(file)));
    yield `${at === 0 ? "\n" : ",\n"}${lines.join(",\n")}`;
  }
  yield "\n]}\n";
}

function toRecord({ path, mode, blob, size, untracked }: ManifestFile): Record<string, unknown> {
  const text = utf8Path(pathOfKey(path));
  const name = text === null ? { pathBase64: pathOfKey(path).toString("base64") } : { path: text };
  return { ...name, mode, blob, size, ...(untracked ? { untracked } : {}) };
}
