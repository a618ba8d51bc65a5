import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { pack } from "tar-stream";

/** Everything the image is built from, below the package's root; the same set as `.dockerignore` lets through. */
const CONTEXT = ["Dockerfile.agent", "images/provision.sh", "images/rootfs"];

interface ContextFile {
  readonly name: string;
  readonly mode: number;
  readonly content: Buffer;
}

export interface BuildContext {
  /** Hash over names, modes and content: the same files give the same version on every machine. */
  readonly version: string;
  tar(): Promise<Buffer>;
}

/** Reads the build context. Small by nature (a few scripts), so it is held in memory. */
export function readBuildContext(packageRoot: string, baseImage: string): BuildContext {
  const files = CONTEXT.flatMap((name) => filesBelow(packageRoot, name));
  const hash = createHash("sha256").update(`base ${baseImage}\n`);
  for (const { name, mode, content } of files) {
    hash.update(`${name} ${mode.toString(8)} ${content.length}\n`).update(content);
  }
  return { version: hash.digest("hex").slice(0, 16), tar: () => tarOf(files) };
}

function filesBelow(root: string, name: string): readonly ContextFile[] {
  const path = join(root, name);
  const stat = lstatSync(path);
  if (stat.isDirectory()) {
    return readdirSync(path)
      .sort()
      .flatMap((child) => filesBelow(root, `${name}/${child}`));
  }
  // Only the executable bit counts: umask and archive tools change the others.
  const mode = (stat.mode & 0o100) === 0 ? 0o644 : 0o755;
  return [{ name, mode, content: readFileSync(path) }];
}

/** Fixed times and owner, so that the engine's build cache recognises unchanged files. */
async function tarOf(files: readonly ContextFile[]): Promise<Buffer> {
  const archive = pack();
  for (const { name, mode, content } of files) archive.entry({ name, mode, mtime: new Date(0) }, content);
  archive.finalize();
  return buffer(archive);
}
