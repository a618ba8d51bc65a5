import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { livingPid } from "../../../src/sandbox/docker/engine-leftovers.ts";
import { pingEngine } from "../../../src/sandbox/docker/find-engine.ts";
import { startEngine } from "../../../src/sandbox/docker/start-engine.ts";

const MAIN = join(import.meta.dirname, "private-engine-main.ts");
const isRoot = process.getuid?.() === 0;
let root = "";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "bh-engine-"));
});
afterEach(async () => {
  const pid = livingPid(join(root, "docker.pid"), "dockerd");
  if (pid !== null) process.kill(pid, "SIGTERM");
  await untilGone(join(root, "docker.pid"), "dockerd");
  spawnSync("umount", [join(root, "data")], { stdio: "ignore" });
  rmSync(root, { recursive: true, force: true });
});

function start(...dockerdArgs: string[]): { said: string; exitCode: number | null } {
  const argv = ["--net", process.execPath, MAIN, root, ...dockerdArgs];
  const { stdout, status } = spawnSync("unshare", argv, { encoding: "utf8", timeout: 90_000 });
  return { said: stdout, exitCode: status };
}

async function untilGone(pidFile: string, program: string): Promise<void> {
  const deadlineMs = Date.now() + 20_000;
  while (livingPid(pidFile, program) !== null && Date.now() < deadlineMs) await sleep(50);
  expect(livingPid(pidFile, program)).toBeNull();
}

const pidOf = (file: string) => Number(readFileSync(join(root, file), "utf8"));

describe("startEngine", () => {
  test("leaves an engine that answers alone", async () => {
    if (!isRoot) return expect(process.getuid?.()).not.toBe(0);
    expect(start()).toMatchObject({
      exitCode: 0,
      said: expect.stringContaining("engine: ready at ") as string,
    });
    const pid = pidOf("docker.pid");
    const again = start();
    expect(again.said).toBe(
      `engine: already running at unix://${root}/docker.sock\nendpoint unix://${root}/docker.sock\n`,
    );
    expect(pidOf("docker.pid")).toBe(pid);
  });

  test("brings one back that was killed with its containerd, whatever files it left", async () => {
    if (!isRoot) return expect(process.getuid?.()).not.toBe(0);
    expect(start().exitCode).toBe(0);
    const containerdPid = "exec/containerd/containerd.pid";
    for (const file of ["docker.pid", containerdPid]) process.kill(pidOf(file), "SIGKILL");
    await untilGone(join(root, "docker.pid"), "dockerd");
    await untilGone(join(root, containerdPid), "containerd");
    expect(existsSync(join(root, "docker.sock"))).toBe(true);
    // The number of a process that lives but is no containerd: dockerd alone would wait for it in vain.
    writeFileSync(join(root, containerdPid), String(process.pid));
    const { said, exitCode } = start();
    for (const name of ["docker.pid", "docker.sock", containerdPid]) {
      expect(said).toContain(`engine: removed ${root}/${name}, left by a dead engine`);
    }
    expect(exitCode).toBe(0);
    expect(await pingEngine(`unix://${root}/docker.sock`, {})).toMatchObject({ ok: true });
  });

  test("says how dockerd ended and shows the end of its log", () => {
    if (!isRoot) return expect(process.getuid?.()).not.toBe(0);
    const config = join(root, "bad.json");
    writeFileSync(config, "{ not json");
    const { said, exitCode } = start(`--config-file=${config}`);
    expect(exitCode).toBe(3);
    expect(said).toContain(`engine-unreachable: dockerd ended with exit code 1 (${root}/docker.sock)`);
    expect(said).toContain(`the end of ${root}/log:`);
    expect(said).toContain(config);
  });

  test("finds the system's engine running and does nothing", async () => {
    const lines: string[] = [];
    const isUp = (await pingEngine("unix:///var/run/docker.sock", {})).ok;
    if (!isUp) return expect(isRoot).toBe(false);
    const pid = livingPid("/var/run/docker.pid", "dockerd");
    expect(await startEngine({ report: (line) => lines.push(line) })).toEqual({
      endpoint: "unix:///var/run/docker.sock",
    });
    expect(lines).toEqual(["engine: already running at unix:///var/run/docker.sock"]);
    expect(livingPid("/var/run/docker.pid", "dockerd")).toBe(pid);
  });
});
