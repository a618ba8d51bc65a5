/** One suite for every driver: what an attempt sees, what comes out, what is left. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AttemptKey, formatRunId, taskIdSchema } from "../../../src/model/ids.ts";
import { DEFAULT_RESULT_LIMITS } from "../../../src/model/run.ts";
import { createDockerEngine } from "../../../src/sandbox/docker/docker-engine.ts";
import type { Engine } from "../../../src/sandbox/sandbox.ts";
import { probeOverlay } from "../../../src/workspace/choose-driver.ts";
import { createCopyDriver } from "../../../src/workspace/copy/copy-driver.ts";
import { gitText } from "../../../src/workspace/git.ts";
import { openObjectStore } from "../../../src/workspace/object-store.ts";
import { createOverlayDriver } from "../../../src/workspace/overlay/overlay-driver.ts";
import type { ObjectStore, Snapshot, Workspace, WorkspaceDriver } from "../../../src/workspace/workspace.ts";
import { docker, runInVolume, testImage } from "../../support/shell-container.ts";
import {
  ALL_FILES,
  bash,
  createTemporaryRepository,
  ODD_FILES,
  type TemporaryRepository,
} from "../../support/temporary-repository.ts";

const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
const clock = { nowMs: () => Date.now() };
const runId = formatRunId("2026-11-30T14:25:01.000Z", randomBytes(3).toString("hex"));
const labels = { "bulkhead.state": `test-${randomBytes(8).toString("hex")}`, "bulkhead.run": runId };

let repo: TemporaryRepository;
let store: ObjectStore;
let engine: Engine;
let image: string;
let head: string;
let base: Snapshot;

beforeAll(async () => {
  repo = createTemporaryRepository(ODD_FILES);
  engine = await createDockerEngine({
    endpoint: "unix:///var/run/docker.sock",
    logger: quiet,
    probeDir: repo.stateDir,
  });
  image = await testImage();
  store = await openObjectStore({ cacheDir: repo.cacheDir, repository: repo.repository });
  head = repo.sh("git rev-parse HEAD").trim();
  await store.importCommit(repo.repository, head, 1);
  base = await snapshot({});
});
afterAll(async () => {
  const filters = { label: [`bulkhead.state=${labels["bulkhead.state"]}`] };
  for (const container of await docker.listContainers({ all: true, filters })) {
    await docker.getContainer(container.Id).remove({ force: true });
  }
  for (const volume of (await docker.listVolumes({ filters })).Volumes)
    await docker.getVolume(volume.Name).remove();
  await engine.close();
  repo.dispose();
});

async function snapshot(parents: Record<string, string>): Promise<Snapshot> {
  const made = await store.snapshot({
    baseCommit: head,
    parents: Object.entries(parents).map(([id, commit]) => ({ taskId: taskIdSchema.parse(id), commit })),
    repository: repo.repository,
    filter: ALL_FILES,
  });
  if (!made.ok) throw new Error(JSON.stringify(made.error));
  return made.value;
}

const drivers: Record<string, () => WorkspaceDriver> = {
  overlay: () => createOverlayDriver({ store, volumes: engine, clock }),
  copy: () => createCopyDriver({ store, volumes: engine, clock }),
};

let serial = 0;
async function open(driver: WorkspaceDriver, from = base, diskBytes: number | null = null) {
  serial += 1;
  const key: AttemptKey = { runId, taskId: taskIdSchema.parse(`t${serial}`), attempt: 1 };
  const attemptDir = join(repo.stateDir, `runs/${runId}/${key.taskId}/1`);
  mkdirSync(attemptDir, { recursive: true, mode: 0o700 });
  const workspace = await driver.open({
    key,
    snapshot: from,
    attemptDir,
    labels,
    image,
    diskBytes,
    message: `patch of ${key.taskId}`,
  });
  return { workspace, attemptDir };
}

const run = (workspace: Workspace, script: string) =>
  runInVolume({ image, volume: workspace.volume, script, labels });

async function patchOf(workspace: Workspace) {
  const patch = await workspace.readPatch(DEFAULT_RESULT_LIMITS);
  if (!patch.ok) throw new Error(JSON.stringify(patch.error));
  return patch.value;
}

/** Volumes, mounts and directories of ours that are still there. */
async function leftovers(attemptDirs: readonly string[]) {
  const { Volumes } = await docker.listVolumes({
    filters: { label: [`bulkhead.state=${labels["bulkhead.state"]}`] },
  });
  return {
    volumes: Volumes.map((volume) => volume.Name),
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes(repo.root)),
    files: attemptDirs.flatMap((directory) => readdirSync(directory)),
  };
}
const NOTHING = { volumes: [], mounts: [], files: [] };

const LISTING = `find . -path ./.git -prune -o -printf '%y %m %U:%G %p %l\\n' | LC_ALL=C sort; find . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum`;

/** The same listing of what git checks out of a commit on this machine. */
function expected(commit: string): string {
  const oracle = join(repo.root, `oracle-${randomBytes(4).toString("hex")}`);
  bash(
    repo.root,
    `umask 022; mkdir ${oracle}; export GIT_INDEX_FILE=${oracle}.index; g="git --git-dir=${store.gitDir} --work-tree=${oracle}"
    $g read-tree ${commit}; $g checkout-index -a; chown -hR 10001:10001 ${oracle}`,
  );
  return bash(oracle, LISTING);
}

test("overlays are found usable here, and not for paths that mount options cannot carry", async () => {
  const options = {
    volumes: engine,
    sharesFilesystem: true,
    stateDir: repo.stateDir,
    cacheDir: repo.cacheDir,
    image,
    labels,
  };
  expect(await probeOverlay(options)).toEqual({ usable: true });
  expect(await probeOverlay({ ...options, stateDir: `${repo.stateDir}/a:b` })).toMatchObject({
    usable: false,
    why: expect.stringContaining("a:b"),
  });
  expect(await probeOverlay({ ...options, sharesFilesystem: false })).toMatchObject({ usable: false });
  expect(await leftovers([repo.stateDir])).toEqual({ ...NOTHING, files: readdirSync(repo.stateDir) });
});

describe.each(Object.keys(drivers))("%s driver", (name) => {
  const driver = () => drivers[name]?.() as WorkspaceDriver;

  test("shows the snapshot whole: files, modes, owners, links, names", async () => {
    const { workspace, attemptDir } = await open(driver());
    const { stdout, exitCode } = await run(workspace, LISTING);
    expect(exitCode).toBe(0);
    expect(stdout).toBe(expected(head));
    expect((await patchOf(workspace)).empty).toBe(true);
    await workspace.release();
    expect(await leftovers([attemptDir])).toEqual(NOTHING);
  });

  test("git works inside, and what the agent leaves becomes a patch", async () => {
    const { workspace } = await open(driver());
    const script = `git status --porcelain; git log --format=%H; echo more >> src/a.txt; rm dir/2; echo new > $'n\\xe9w'; ln -s a.txt src/l; chmod +x dir/1
      git diff --stat -- src | tail -1; git add -A; git commit -qm mine; git log --format=%s -1; git show --stat | tail -1; git status --porcelain; mkdir sub; mv sub other; rename() { :; }`;
    const { stdout, stderr, exitCode } = await run(workspace, script);
    expect(stderr).toBe("");
    expect(exitCode).toBe(0);
    expect(stdout).toBe(
      `${head}\n 1 file changed, 1 insertion(+)\nmine\n 5 files changed, 3 insertions(+), 1 deletion(-)\n`,
    );
    const patch = await patchOf(workspace);
    expect(patch.parent).toBe(head);
    expect(patch.files.map(({ path, kind }) => `${kind} ${path}`).sort()).toEqual(
      ["added src/l", 'added "n\\351w"', "deleted dir/2", "mode-changed dir/1", "modified src/a.txt"].sort(),
    );
    await workspace.release();
  });

  test("what dependencies changed is there, and the patch is on top of it", async () => {
    const first = await open(driver());
    await run(
      first.workspace,
      "echo x > src/a.txt; rm -r gone tests; echo file > tests; rm link; mkdir link; echo in > link/f; echo n > new; rm 'quo\"te'",
    );
    const a = (await patchOf(first.workspace)).commit;
    const second = await open(driver());
    await run(second.workspace, "echo y > second; rm dir/1");
    const b = (await patchOf(second.workspace)).commit;
    const merged = await snapshot({ a, b });
    const third = await open(driver(), merged);
    const seen = await run(
      third.workspace,
      `${LISTING}; git status --porcelain; git log --format=%H | wc -l; echo third > third`,
    );
    expect(seen.stdout).toBe(`${expected(merged.commit)}4\n`);
    const patch = await patchOf(third.workspace);
    expect(patch.parent).toBe(merged.commit);
    expect(patch.files.map(({ path }) => path)).toEqual(["third"]);
    for (const { workspace } of [first, second, third]) await workspace.release();
  });

  test("twenty open at once, each its own, and nothing is left of them", async () => {
    const many = driver();
    const opened = await Promise.all(Array.from({ length: 20 }, () => open(many)));
    expect(new Set(opened.map(({ workspace }) => workspace.volume)).size).toBe(20);
    const [one, two] = opened;
    if (!one || !two) throw new Error("not opened");
    await run(one.workspace, "echo mine > private");
    expect((await run(two.workspace, "ls private || echo unseen")).stdout).toBe("unseen\n");
    expect((await patchOf(one.workspace)).files.map(({ path }) => path)).toEqual(["private"]);
    expect((await patchOf(two.workspace)).empty).toBe(true);
    await Promise.all(opened.map(({ workspace }) => workspace.release()));
    await one.workspace.release();
    expect(await leftovers(opened.map(({ attemptDir }) => attemptDir))).toEqual(NOTHING);
  });

  test("a tree too deep for a path is read as refused and goes all the same", async () => {
    const { workspace, attemptDir } = await open(driver());
    const deep = `python3 - <<'END'\nimport os\nfor i in range(600):\n    os.mkdir('d' * 200); os.chdir('d' * 200)\nEND`;
    expect((await run(workspace, deep)).exitCode).toBe(0);
    const patch = await workspace.readPatch(DEFAULT_RESULT_LIMITS);
    expect(patch.ok || patch.error.reason).not.toBe("runner-bug");
    await workspace.release();
    expect(await leftovers([attemptDir])).toEqual(NOTHING);
  });

  test("a failing step of the release does not keep the others", async () => {
    const { workspace, attemptDir } = await open(driver());
    const user = await docker.createContainer({
      Image: image,
      Cmd: ["true"],
      Labels: labels,
      HostConfig: { Mounts: [{ Type: "volume", Source: workspace.volume, Target: "/workspace" }] },
    });
    await expect(workspace.release()).rejects.toMatchObject({
      code: "workspace-failed",
      data: { volume: workspace.volume },
    });
    expect(readdirSync(attemptDir)).toEqual([]);
    await user.remove({ force: true });
    await workspace.release();
    expect(await leftovers([attemptDir])).toEqual(NOTHING);
  });
});

describe("overlay driver only", () => {
  test("opening again gives the workspace of a container that still runs", async () => {
    const driver = createOverlayDriver({ store, volumes: engine, clock });
    const { workspace } = await open(driver);
    await run(workspace, "echo kept > kept");
    serial -= 1;
    const { workspace: again } = await open(driver);
    expect(again.volume).toBe(workspace.volume);
    expect((await patchOf(again)).files.map(({ path }) => path)).toEqual(["kept"]);
    await again.release();
  });

  test("keeps a disk cap by the kernel", async () => {
    const driver = createOverlayDriver({ store, volumes: engine, clock });
    const { workspace, attemptDir } = await open(driver, base, 16 * 1024 ** 2);
    expect(workspace.diskCap).toBe("hard");
    const { stdout, exitCode } = await run(
      workspace,
      "head -c 12M /dev/zero > fits; rm fits; head -c 64M /dev/zero > big || true; stat -c %s big; rm big; echo ok > small",
    );
    expect(exitCode).toBe(0);
    const written = Number(stdout);
    expect(written).toBeGreaterThan(12 * 1024 ** 2);
    expect(written).toBeLessThan(28 * 1024 ** 2);
    expect((await patchOf(workspace)).files.map(({ path }) => path)).toEqual(["small"]);
    await workspace.release();
    expect(await leftovers([attemptDir])).toEqual(NOTHING);
    expect(bash(repo.root, "losetup --all --noheadings --output BACK-FILE")).not.toContain(repo.root);
  });

  test("a failed opening leaves nothing and names the path that does not fit", async () => {
    const driver = createOverlayDriver({ store, volumes: engine, clock });
    const odd = { ...base, layers: [`${repo.root}/with,comma`] };
    await expect(open(driver, odd)).rejects.toMatchObject({
      code: "workspace-failed",
      data: { path: `${repo.root}/with,comma` },
    });
    expect(existsSync(join(repo.stateDir, `runs/${runId}/t${serial}/1/upper`))).toBe(false);
  });

  test("keeps the person's base tree as it was", async () => {
    const tree = base.layers[0] ?? "";
    const before = bash(tree, "find . -printf '%p %y %m %s %T@ %C@\\n' | sort | sha256sum");
    const { workspace } = await open(createOverlayDriver({ store, volumes: engine, clock }));
    await run(
      workspace,
      "find . -path ./.git -prune -o -type f -exec sh -c 'echo x >> \"$1\"' _ {} ';'; rm -rf src .git/objects",
    );
    await patchOf(workspace);
    await workspace.release();
    expect(bash(tree, "find . -printf '%p %y %m %s %T@ %C@\\n' | sort | sha256sum")).toBe(before);
    expect(await gitText(store.gitDir, ["cat-file", "-t", head])).toBe("commit");
  });
});
