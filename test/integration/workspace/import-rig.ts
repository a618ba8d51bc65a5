/** A base tree, an object store and two ways to let a "container" change a copy of it: an overlay mount, a plain directory. */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import type { Failure } from "../../../src/model/failure.ts";
import { runIdSchema, taskIdSchema } from "../../../src/model/ids.ts";
import type { Patch } from "../../../src/model/patch.ts";
import { DEFAULT_RESULT_LIMITS, type ResultLimits } from "../../../src/model/run.ts";
import type { Result } from "../../../src/util/result.ts";
import { gitBytes, gitText } from "../../../src/workspace/git.ts";
import { listTree } from "../../../src/workspace/import/base-tree.ts";
import {
  importFromOverlay,
  type OverlayImportRequest,
} from "../../../src/workspace/import/overlay-import.ts";
import { importFromTar } from "../../../src/workspace/import/tar-import.ts";
import { writeManifest } from "../../../src/workspace/manifest.ts";
import type { Snapshot } from "../../../src/workspace/workspace.ts";

export type Outcome = Result<Patch, Failure>;

export interface RunOptions {
  readonly limits?: Partial<ResultLimits>;
  readonly exclude?: string;
  /** Layers on top of the base tree: made by `make` in an empty directory, topmost first. */
  readonly layers?: ReadonlyArray<(directory: string) => void>;
  /** A snapshot that lacks some files of the commit. */
  readonly leaveOut?: readonly string[];
  /** More options of the writable overlay, e.g. `redirect_dir=on`. */
  readonly mountOptions?: string;
  /** Ask git too. Not for trees that git would run programs from, or never finish. */
  readonly oracle?: boolean;
}

export interface RunResult {
  readonly outcome: Outcome;
  /** The tree that `git add -A` makes of the same directory; null where it was not asked for. */
  readonly oracle: string | null;
  /** Whether something on the host ran what lay in the workspace. */
  readonly canary: boolean;
}

export interface ImportRig {
  readonly root: string;
  readonly gitDir: string;
  readonly baseCommit: string;
  /** Lets `change` work on a fresh copy, then imports it. */
  run(change: (work: string) => void, options?: RunOptions): Promise<RunResult>;
  dispose(): void;
}

const KEY = {
  runId: runIdSchema.parse("20261130-142501-3f9a2c"),
  taskId: taskIdSchema.parse("docs_update"),
  attempt: 2,
};
const AT_MS = 1_800_000_000_000;
const IDENTITY = {
  GIT_AUTHOR_NAME: "t",
  GIT_AUTHOR_EMAIL: "t@example.org",
  GIT_COMMITTER_NAME: "t",
  GIT_COMMITTER_EMAIL: "t@example.org",
};
/** The oracle is git's own porcelain on the test's own directory: never the way for a hostile one. */
const ORACLE = ["-c", "core.autocrlf=false", "-c", "advice.addEmbeddedRepo=false"];

export function sh(cwd: string, script: string): string {
  return execFileSync("bash", ["-euc", script], {
    cwd,
    encoding: "latin1",
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** Makes a rig whose base commit is what `setup` leaves in an empty directory. */
export async function createImportRig(
  driver: "overlay" | "copy",
  setup: (directory: string) => void,
  objectFormat: "sha1" | "sha256" = "sha1",
): Promise<ImportRig> {
  const root = mkdtempSync(join(tmpdir(), "bh-import-"));
  const gitDir = join(root, "store.git");
  const base = join(root, "base");
  await gitText(null, ["init", "-q", "--bare", `--object-format=${objectFormat}`, "--template=", gitDir]);
  mkdirSync(join(gitDir, "info"), { recursive: true });
  writeFileSync(
    join(gitDir, "info/attributes"),
    "* !text !eol !ident !working-tree-encoding !filter !diff !merge\n",
  );
  mkdirSync(base);
  setup(base);
  const tree = await writeTree(gitDir, base, join(root, "base.index"));
  const baseCommit = await gitText(gitDir, ["commit-tree", "-m", "base", tree], { env: IDENTITY });
  let runs = 0;
  return {
    root,
    gitDir,
    baseCommit,
    async run(change, options = {}) {
      runs += 1;
      const place = join(root, `run${runs}`);
      mkdirSync(place);
      const layers = (options.layers ?? []).map((make, index) => {
        const directory = join(place, `layer${index}`);
        mkdirSync(directory);
        make(directory);
        return directory;
      });
      let lowest = base;
      if (options.leaveOut) {
        lowest = join(place, "filtered");
        execFileSync("cp", ["-a", base, lowest]);
        for (const path of options.leaveOut) rmSync(join(lowest, path), { recursive: true });
      }
      const snapshot: Snapshot = {
        commit: baseCommit,
        insideHead: baseCommit,
        layers: [...layers, lowest],
        manifestPath: join(place, "manifest.json"),
      };
      await writeSnapshotManifest(gitDir, snapshot, options.leaveOut ?? []);
      const request = {
        gitDir,
        snapshot,
        key: KEY,
        atMs: AT_MS,
        message: "Update the docs: größer",
        limits: { ...DEFAULT_RESULT_LIMITS, ...options.limits },
        ...(options.exclude === undefined ? {} : { exclude: options.exclude }),
      };
      return driver === "overlay"
        ? overOverlay(place, request, change, options)
        : overTar(place, request, change, options);
    },
    dispose() {
      execFileSync("rm", ["-rf", "--one-file-system", root]);
    },
  };
}

type Request = Omit<OverlayImportRequest, "upperDir" | "mergedDir">;

async function overOverlay(
  place: string,
  request: Request,
  change: (work: string) => void,
  options: RunOptions,
): Promise<RunResult> {
  const [upper, workDir, merged] = ["upper", "work", "merged"].map((name) => {
    mkdirSync(join(place, name));
    return join(place, name);
  }) as [string, string, string];
  const lower = request.snapshot.layers.join(":");
  execFileSync("mount", [
    "-t",
    "overlay",
    "overlay",
    "-o",
    `${options.mountOptions ?? "volatile"},lowerdir=${lower},upperdir=${upper},workdir=${workDir}`,
    merged,
  ]);
  let oracle: string | null = null;
  try {
    change(merged);
    if (options.oracle) oracle = await oracleTree(place, request.gitDir, merged);
  } finally {
    execFileSync("umount", [merged]);
  }
  const flags = "ro,nosuid,nodev,noexec,nosymfollow";
  execFileSync("mount", ["-t", "overlay", "overlay", "-o", `${flags},lowerdir=${upper}:${lower}`, merged]);
  try {
    const outcome = await importFromOverlay({ ...request, upperDir: upper, mergedDir: merged });
    return { outcome, oracle, canary: existsSync(join(place, "canary")) };
  } finally {
    execFileSync("umount", [merged]);
  }
}

async function overTar(
  place: string,
  request: Request,
  change: (work: string) => void,
  options: RunOptions,
): Promise<RunResult> {
  const work = join(place, "copy");
  mkdirSync(work);
  for (const layer of [...request.snapshot.layers].reverse()) execFileSync("cp", ["-a", `${layer}/.`, work]);
  // What a layer's whiteouts delete is not there in a copied workspace either.
  sh(work, "find . -type c -delete");
  change(work);
  const oracle = options.oracle ? await oracleTree(place, request.gitDir, work) : null;
  const spoolDir = join(place, "spool");
  mkdirSync(spoolDir);
  const tar = spawn("tar", ["--format=pax", "--sort=name", "-cf", "-", "."], {
    cwd: work,
    stdio: ["ignore", "pipe", "ignore"],
  });
  // Node reads on by itself what a child that ended has left in its pipe.
  const archive = tar.stdout.pipe(new PassThrough());
  try {
    const outcome = await importFromTar({ ...request, tar: archive, spoolDir });
    return { outcome, oracle, canary: existsSync(join(place, "canary")) };
  } finally {
    tar.kill("SIGKILL");
  }
}

function oracleTree(place: string, gitDir: string, work: string): Promise<string> {
  return writeTree(gitDir, work, join(place, "oracle.index"));
}

async function writeTree(gitDir: string, work: string, index: string): Promise<string> {
  const env = { GIT_INDEX_FILE: index };
  const where = [...ORACLE, `--work-tree=${work}`];
  await gitBytes(gitDir, [...where, "add", "-A", "."], { env, cwd: work });
  return gitText(gitDir, [...where, "write-tree"], { env, cwd: work });
}

async function writeSnapshotManifest(
  gitDir: string,
  snapshot: Snapshot,
  leaveOut: readonly string[],
): Promise<void> {
  const files = [];
  for (const [path, entry] of await listTree(gitDir, snapshot.commit, false)) {
    if (entry.mode === "160000" || leaveOut.some((left) => path === left || path.startsWith(`${left}/`)))
      continue;
    files.push({ path, mode: entry.mode, blob: entry.oid, size: 0 });
  }
  await writeManifest(snapshot.manifestPath, snapshot.commit, files);
}
