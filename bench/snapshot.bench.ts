/**
 * What it takes to give an attempt its workspace, against the ways people do it by hand.
 *
 * Everything lies on one tmpfs, where copying is at its fastest: a disk would only make the rivals slower. Ours is `open` of the overlay
 * driver (directories, volume through the engine's API) plus the mount that the engine does at start, here done by mount(8)
 * with the volume's own options, less the start of a process, which the engine does not need for it. Rivals and ours take turns, so
 * that a busy moment hits all; of ours each run takes the median of a few openings, large and small repository in turn.
 */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatRunId, taskIdSchema } from "../src/model/ids.ts";
import type { FileFilter } from "../src/model/task.ts";
import { createDockerEngine } from "../src/sandbox/docker/docker-engine.ts";
import { openObjectStore } from "../src/workspace/object-store.ts";
import { mountForWriting, unmount, writableOptions } from "../src/workspace/overlay/mounts.ts";
import { createOverlayDriver } from "../src/workspace/overlay/overlay-driver.ts";
import { runTool } from "../src/workspace/run-tool.ts";
import type { ObjectStore, Snapshot, VolumePort } from "../src/workspace/workspace.ts";
import { type BenchRow, printRows, rowOf, spread } from "./support/bench-row.ts";

const RUNS = 10;
const OPENINGS = 7;
const FILES_PER_DIRECTORY = 50;
const ALL_FILES: FileFilter = { include: [], exclude: [], tests: "all", keywords: [], history: 1, extra: [] };

const git = (cwd: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "gc.auto=0", ...args], {
    cwd,
    stdio: ["ignore", "pipe", "ignore"],
    encoding: "utf8",
  }).trim();

/** A repository of `files` files of about 7 KB, packed as after a clone. */
function makeRepository(directory: string, files: number): void {
  mkdirSync(directory);
  git(directory, "init", "-q");
  for (let index = 0; index < files; index += 1) {
    const folder = join(directory, `d${Math.floor(index / FILES_PER_DIRECTORY)}`);
    if (index % FILES_PER_DIRECTORY === 0) mkdirSync(folder);
    writeFileSync(join(folder, `f${index}.txt`), `${index} ${randomBytes(1800).toString("hex")}\n`.repeat(2));
  }
  git(directory, "add", "-A");
  git(directory, "commit", "-qm", "first");
  git(directory, "-c", "pack.window=0", "repack", "-adq");
}

interface Subject {
  readonly repository: string;
  readonly store: ObjectStore;
  readonly snapshot: Snapshot;
}

async function makeSubject(root: string, files: number): Promise<Subject> {
  const repository = join(root, `repo${files}`);
  makeRepository(repository, files);
  const store = await openObjectStore({ cacheDir: join(root, `cache${files}`), repository });
  const baseCommit = git(repository, "rev-parse", "HEAD");
  await store.importCommit(repository, baseCommit, 1);
  const made = await store.snapshot({ baseCommit, parents: [], filter: ALL_FILES, repository });
  if (!made.ok) throw new Error(JSON.stringify(made.error));
  return { repository, store, snapshot: made.value };
}

async function elapsedMs(work: () => unknown): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

/** Opens a workspace and mounts it, as the engine would; undoes it off the clock. */
async function measureOurs(
  root: string,
  volumes: VolumePort,
  { store, snapshot }: Subject,
  serial: number,
): Promise<number> {
  const attemptDir = join(root, `attempt${serial}`);
  const merged = join(attemptDir, "seen");
  mkdirSync(merged, { recursive: true });
  const driver = createOverlayDriver({ store, volumes, clock: { nowMs: () => Date.now() } });
  const open = () =>
    driver.open({
      key: {
        runId: formatRunId(new Date().toISOString(), randomBytes(3).toString("hex")),
        taskId: taskIdSchema.parse(`b${serial}`),
        attempt: 1,
      },
      snapshot,
      attemptDir,
      labels: { "bulkhead.state": "bench" },
      image: "none",
      diskBytes: null,
      message: "bench",
    });
  const begin = performance.now();
  const workspace = await open();
  const places = { upper: join(attemptDir, "upper"), work: join(attemptDir, "work") };
  await mountForWriting(writableOptions({ layers: snapshot.layers, ...places }), merged);
  const tookMs = performance.now() - begin - (await elapsedMs(() => runTool("true", [])));
  await unmount(merged);
  await workspace.release();
  return tookMs;
}

const RIVALS: Readonly<Record<string, (repository: string, target: string) => void>> = {
  "git worktree add": (repository, target) =>
    void git(repository, "worktree", "add", "-q", "--detach", target),
  "git clone --shared": (repository, target) => void git("/", "clone", "-q", "--shared", repository, target),
  "cp -a": (repository, target) => void execFileSync("cp", ["-a", repository, target]),
};

/** Measures and returns one row per rival, one against the best of them, and one on how the size of the repository counts. */
export async function runSnapshotBench(): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), "bh-bench-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=3g,mode=755", "tmpfs", root]);
  const quiet = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
  };
  const endpoint = process.env["DOCKER_HOST"] ?? "unix:///var/run/docker.sock";
  const engine = await createDockerEngine({ endpoint, logger: quiet, probeDir: root });
  try {
    const large = await makeSubject(root, 20_000);
    const small = await makeSubject(root, 1_000);
    return await measure(root, engine, large, small);
  } finally {
    await engine.close();
    execFileSync("umount", ["--lazy", root]);
    execFileSync("rmdir", [root]);
  }
}

async function measure(
  root: string,
  volumes: VolumePort,
  large: Subject,
  small: Subject,
): Promise<BenchRow[]> {
  const ours: number[] = [];
  const oursSmall: number[] = [];
  const rivals = new Map(Object.keys(RIVALS).map((name): [string, number[]] => [name, []]));
  let serial = 0;
  const openings = async (): Promise<[large: number, small: number]> => {
    const taken: [number[], number[]] = [[], []];
    for (let opening = 0; opening < OPENINGS; opening += 1) {
      taken[0].push(await measureOurs(root, volumes, large, serial++));
      taken[1].push(await measureOurs(root, volumes, small, serial++));
    }
    return [spread(taken[0])[1], spread(taken[1])[1]];
  };
  // Warms caches and connections.
  await openings();
  for (let run = 0; run < RUNS; run += 1) {
    const [largeMs, smallMs] = await openings();
    ours.push(largeMs);
    oursSmall.push(smallMs);
    for (const [name, make] of Object.entries(RIVALS)) {
      const target = join(root, "rival");
      rivals.get(name)?.push(await elapsedMs(() => make(large.repository, target)));
      execFileSync("rm", ["-rf", target]);
      git(large.repository, "worktree", "prune");
    }
  }
  const ratios = (times: readonly number[]) => times.map((ms, index) => ms / (ours[index] ?? Number.NaN));
  const best = ours.map((_, index) =>
    Math.min(...[...rivals.values()].map((times) => times[index] ?? Number.NaN)),
  );
  const claim = "snapshot of 20,000 files, times faster";
  return [
    ...[...rivals].map(([name, times]) =>
      rowOf(claim, name, ratios(times), `${ms(times)} against ${ms(ours)}`),
    ),
    rowOf(claim, "the best of these", ratios(best), "bar: 50"),
    rowOf(
      "snapshot of 20,000 files, time as a multiple",
      "snapshot of 1,000 files",
      ours.map((time, index) => time / (oursSmall[index] ?? Number.NaN)),
      `${ms(ours)} against ${ms(oursSmall)}; bar: at most 1.3`,
    ),
  ];
}

function ms(times: readonly number[]): string {
  return `${spread(times)[1].toFixed(1)} ms`;
}

if (import.meta.main) printRows(await runSnapshotBench());
