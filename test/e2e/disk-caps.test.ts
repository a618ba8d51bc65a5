/** The disk cap where the kernel does not keep it, and full places told apart: typed causes, peaks, and what the report prints (row D1). */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CliResult, createRepository, createRig, git, type Rig } from "../support/bulkhead-cli.ts";
import { endRig, readEvents, statusOf, taskOf, writePlan } from "../support/e2e-rig.ts";

const MIB = 1024 ** 2;
const isRoot = process.getuid?.() === 0;
const FILL = "head -c 20000000 /dev/zero > big";
const DEFAULTS = { timeout: "60s", retries: 0, caps: { memory: "64m", pids: 64, disk: "8m", tmp: "4m" } };
const TASKS = [
  { id: "small", run: "head -c 1000000 /dev/urandom > small" },
  { id: "goes-on", run: `${FILL}; sleep 50` },
  { id: "ends-first", run: FILL },
  { id: "strict", caps_mode: "strict", run: "true" },
];

let rig: Rig;
let repository: string;
beforeAll(() => {
  rig = createRig();
  // More than the cap: what was there already does not count.
  repository = createRepository(join(rig.root, "repo"), {
    "README.md": "hello\n",
    data: "x".repeat(12 * MIB),
  });
});
afterAll(() => endRig(rig));

const diskReport = (of: Rig, task: string) =>
  readEvents(of)
    .flatMap(({ event }) => (event.type === "sandbox-started" && event.taskId === task ? event.caps : []))
    .find(({ cap }) => cap === "disk");

/** What holds however the workspace is made, as long as no kernel limit is on it. */
async function expectWatched(of: Rig, ran: CliResult, why: RegExp): Promise<void> {
  const status = await statusOf(of);
  expect(taskOf(status, "small")).toMatchObject({ state: "succeeded", patch: { files: 1 } });
  expect(diskReport(of, "small")).toMatchObject({ state: "not-enforced", requested: 8 * MIB, actual: null });
  expect(diskReport(of, "small")?.note).toMatch(/^watched: checked every 1 s/);
  expect(diskReport(of, "small")?.note).toMatch(why);
  for (const id of ["goes-on", "ends-first"]) {
    const { failure } = taskOf(status, id);
    expect(failure, id).toMatchObject({ reason: "disk-full", fault: "agent" });
    expect(failure?.data, id).toMatchObject({ limitBytes: 8 * MIB, by: "watch", place: "/workspace" });
    const { peakBytes } = (failure?.data ?? {}) as { peakBytes?: number };
    expect(peakBytes, id).toBeGreaterThan(19_000_000);
    expect(ran.stdout).toMatch(
      new RegExp(`✗ ${id}: disk full: the workspace may hold 8 MiB of changes, [12]\\d`),
    );
  }
  const { started_ms: began, ended_ms: ended } = taskOf(status, "goes-on");
  expect((ended ?? 0) - (began ?? 0)).toBeLessThan(25_000);
  expect(taskOf(status, "strict").failure).toMatchObject({ reason: "caps-not-enforced" });
}

test("a copied workspace is watched: over the cap is stopped, or refused where it ended first", async () => {
  const plan = writePlan(rig, { defaults: DEFAULTS, tasks: TASKS });
  const ran = await rig.run(["run", plan, "--workspace", "copy"], { cwd: repository });
  expect(ran.code, ran.stderr).toBe(3);
  await expectWatched(rig, ran, /a copy in a volume/);
});

test("an overlay on a machine that cannot make disk images is watched too", async () => {
  if (!isRoot) return expect(process.getuid?.()).not.toBe(0);
  const bin = join(rig.root, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "mke2fs"), "#!/bin/sh\nexit 1\n");
  chmodSync(join(bin, "mke2fs"), 0o755);
  const plan = writePlan(rig, { defaults: DEFAULTS, tasks: TASKS });
  const other = createRig();
  try {
    // A supervisor of its own, since it is the one that looks for programs.
    const env = { PATH: `${bin}:${process.env["PATH"]}` };
    const ran = await other.run(["run", plan, "--workspace", "overlay"], { cwd: repository, env });
    expect(ran.code, ran.stderr).toBe(3);
    await expectWatched(other, ran, /no disk image can be made here/);
    const doctor = await other.run(["doctor"], { cwd: repository, env });
    expect(doctor.stdout).toMatch(/^warn {2}disk cap: not kept by the kernel \(.*mke2fs/m);
  } finally {
    await endRig(other);
  }
});

describe("where the kernel keeps it", () => {
  test("each full place has its own cause; files that the person ignores privately stay out", async () => {
    if (!isRoot) return expect(process.getuid?.()).not.toBe(0);
    writeFileSync(join(repository, ".git/info/exclude"), "*.private\n");
    const tasks = [
      { id: "workspace", run: "sleep 0.2; head -c 20000000 /dev/zero > big" },
      { id: "tmp", run: "sleep 0.2; head -c 20000000 /dev/zero > /tmp/big" },
      { id: "own-kill", run: "kill -9 $$" },
      { id: "ignored", run: "echo 1 > mine.private; echo 2 > kept" },
    ];
    const plan = writePlan(rig, { defaults: DEFAULTS, tasks });
    const ran = await rig.run(["run", plan], { cwd: repository });
    expect(ran.code, ran.stderr).toBe(1);
    const status = await statusOf(rig);
    expect(diskReport(rig, "workspace")).toMatchObject({ state: "enforced", requested: 8 * MIB });
    expect(taskOf(status, "workspace").failure?.data).toMatchObject({
      limitBytes: 8 * MIB,
      by: "kernel",
      cap: "disk",
      place: "/workspace",
    });
    expect(taskOf(status, "tmp").failure).toMatchObject({
      reason: "disk-full",
      data: { limitBytes: 4 * MIB, peakBytes: 4 * MIB, cap: "tmp", place: "/tmp" },
    });
    expect(ran.stdout).toContain("✗ tmp: disk full: /tmp may hold 4 MiB, 4 MiB in use");
    expect(ran.stdout).toContain("next: raise caps.tmp above 4 MiB");
    expect(taskOf(status, "own-kill")).toMatchObject({
      attempt: 1,
      failure: { reason: "exit", fault: "agent", data: { exitCode: 137, signal: "SIGKILL" } },
    });
    expect(taskOf(status, "ignored")).toMatchObject({ state: "succeeded", patch: { files: 1 } });
    const { stdout } = await rig.run(["diff", "latest", "ignored"]);
    expect(stdout).toContain("kept");
    expect(stdout).not.toContain("mine.private");
    expect(git(repository, "status", "--porcelain")).toBe("");
    const doctor = await rig.run(["doctor"], { cwd: repository });
    expect(doctor.stdout).toMatch(/^ok {4}disk cap: kept by the kernel/m);
  });
});
