/**
 * Theory of operation. Programs that the inside of every container may need, whatever its image, lie in one folder of the cache
 * that is mounted read-only at /opt/bulkhead: this very Node as `bin/node`, the bus client and a small script that starts it.
 * The folder's name is a hash of what it is made from, so a new version makes a new folder and running containers keep theirs.
 * It is built under a temporary name and renamed: other processes see all of it or nothing.
 *
 * LIMITATION: Node needs glibc and libstdc++ of the image. An image with musl (Alpine) can still use plain HTTP on the door.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  open,
  readFile,
  realpath,
  rename,
  rm,
  stat,
} from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RunnerError } from "../model/runner-error.ts";
import type { Toolbox } from "./engine-setup.ts";

/** Same depth from `src/` and from `dist/`. */
const PACKAGE_ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Raised when the layout of the folder changes in a way its inputs do not show. */
const LAYOUT = 1;

export interface ToolboxOptions {
  readonly cacheDir: string;
  /** Where `dist/toolbox/` and `images/bin/` are; this package unless a test says otherwise. */
  readonly packageRoot?: string;
  /** The Node to take along; the one that runs this unless a test says otherwise. */
  readonly nodePath?: string;
}

/** Makes sure the toolbox of this version is in the cache. Safe to repeat and to call from many processes at once. */
export async function ensureToolbox(options: ToolboxOptions): Promise<Toolbox> {
  const inputs = await readInputs(options.packageRoot ?? PACKAGE_ROOT, options.nodePath ?? process.execPath);
  const parent = join(options.cacheDir, "toolbox");
  const dir = join(parent, inputs.version);
  if (await isDirectory(dir)) return { dir, version: inputs.version };

  await mkdir(parent, { recursive: true });
  const building = await mkdtemp(join(parent, ".building-"));
  try {
    await fill(building, inputs);
    await rename(building, dir);
  } catch (cause) {
    await rm(building, { recursive: true, force: true });
    // Another process was first: its folder has the same content, since the name says what is in it.
    if (await isDirectory(dir)) return { dir, version: inputs.version };
    throw cause;
  }
  return { dir, version: inputs.version };
}

interface ToolboxInputs {
  readonly version: string;
  readonly nodePath: string;
  readonly client: Buffer;
  readonly launcher: Buffer;
}

async function readInputs(packageRoot: string, execPath: string): Promise<ToolboxInputs> {
  const nodePath = await realpath(execPath);
  await mustBeGlibc(nodePath);
  const client = await readInput(join(packageRoot, "dist/toolbox/bulkhead-bus.mjs"));
  const launcher = await readInput(join(packageRoot, "images/bin/bulkhead-bus"));
  const node = await stat(nodePath);
  // Node's own size and time stand for its content: hashing 120 MB on every start would cost more than all the rest.
  const version = createHash("sha256")
    .update(`${LAYOUT} ${process.version} ${process.arch} ${nodePath} ${node.size} ${node.mtimeMs}\n`)
    .update(`${client.length}\n`)
    .update(client)
    .update(launcher)
    .digest("hex")
    .slice(0, 16);
  return { version, nodePath, client, launcher };
}

async function readInput(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    throw new RunnerError(
      "internal",
      `${path} is missing, so the tools for the containers cannot be put together`,
      {
        cause,
        data: { path },
        hint: "run `npm run build`",
      },
    );
  }
}

async function fill(dir: string, inputs: ToolboxInputs): Promise<void> {
  const bin = join(dir, "bin");
  await mkdir(bin);
  // A copy, not a hard link: the file is handed to untrusted code and must share no inode with the host's Node.
  await copyFile(inputs.nodePath, join(bin, "node"), constants.COPYFILE_FICLONE);
  await writeDurably(join(dir, "bulkhead-bus.mjs"), inputs.client);
  await writeDurably(join(bin, "bulkhead-bus"), inputs.launcher);
  await chmod(join(dir, "bulkhead-bus.mjs"), 0o444);
  for (const name of ["node", "bulkhead-bus"]) await chmod(join(bin, name), 0o555);
  // World-readable whatever the umask: the uid inside owns nothing here. The owner keeps the right to delete.
  for (const folder of [bin, dir]) await chmod(folder, 0o755);
}

/** A half-written tool behind a finished name would be found "up to date" for ever after a crash. */
async function writeDurably(path: string, content: Buffer): Promise<void> {
  const file = await open(path, "wx", 0o644);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

async function mustBeGlibc(path: string): Promise<void> {
  const interpreter = await elfInterpreter(path);
  if (interpreter?.includes("/ld-linux")) return;
  throw new RunnerError(
    "internal",
    `${path} cannot go into containers: it is not a Linux program for glibc`,
    {
      data: { path, interpreter },
      hint: "run bulkhead with a Node from nodejs.org or from the npm package `node`",
    },
  );
}

/** The dynamic loader an ELF64 little-endian program asks for; null for anything else, also a static program. */
async function elfInterpreter(path: string): Promise<string | null> {
  const file = await open(path, "r");
  try {
    // Program headers follow the file header directly in every linker's output, and the loader's name comes soon after.
    const { buffer, bytesRead } = await file.read(Buffer.alloc(16_384), 0, 16_384, 0);
    const head = buffer.subarray(0, bytesRead);
    if (head.length < 64 || head.readUInt32BE(0) !== 0x7f454c46 || head[4] !== 2 || head[5] !== 1)
      return null;
    const tableAt = Number(head.readBigUInt64LE(32));
    const entrySize = head.readUInt16LE(54);
    const entries = head.readUInt16LE(56);
    for (let index = 0; index < entries; index += 1) {
      const at = tableAt + index * entrySize;
      if (at + 56 > head.length) return null;
      const isInterpreter = head.readUInt32LE(at) === 3;
      if (!isInterpreter) continue;
      const from = Number(head.readBigUInt64LE(at + 8));
      const size = Number(head.readBigUInt64LE(at + 32));
      return head.subarray(from, from + Math.max(0, size - 1)).toString("latin1");
    }
    return null;
  } finally {
    await file.close();
  }
}
