import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  type EngineLayout,
  livingPid,
  removeEngineLeftovers,
} from "../../../src/sandbox/docker/engine-leftovers.ts";

let root = "";
let layout: EngineLayout;
const closing: Array<() => void> = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "bh-left-"));
  mkdirSync(join(root, "exec/containerd"), { recursive: true });
  layout = {
    socketPath: join(root, "docker.sock"),
    pidFile: join(root, "docker.pid"),
    execRoot: join(root, "exec"),
    dataRoot: null,
    logPath: join(root, "log"),
    extraArgs: [],
  };
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
  rmSync(root, { recursive: true, force: true });
});

function leaveDeadSocket(path: string): void {
  const script = `require("node:net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
  spawnSync(process.execPath, ["-e", script]);
  expect(existsSync(path)).toBe(true);
}

async function leaveLivingSocket(path: string): Promise<void> {
  const server: Server = createServer().listen(path);
  await once(server, "listening");
  closing.push(() => server.close());
}

/** A process whose name in the kernel is `name`, without being that program. */
async function processNamed(name: string): Promise<number> {
  const program = join(root, name);
  copyFileSync("/bin/sleep", program);
  const child = spawn(program, ["600"], { stdio: "ignore" });
  closing.push(() => child.kill("SIGKILL"));
  await once(child, "spawn");
  return child.pid ?? 0;
}

test("a crash leaves pid files and sockets; all of them go, and only they", async () => {
  const containerd = join(layout.execRoot, "containerd");
  leaveDeadSocket(layout.socketPath);
  leaveDeadSocket(join(containerd, "containerd.sock"));
  // A number that belongs to another program by now: this very process.
  writeFileSync(layout.pidFile, `${process.pid}`);
  writeFileSync(join(containerd, "containerd.pid"), "999999999");
  writeFileSync(join(containerd, "containerd.toml"), "kept = true");
  const removed = await removeEngineLeftovers(layout);
  expect(new Set(removed)).toEqual(
    new Set([
      layout.pidFile,
      join(containerd, "containerd.pid"),
      join(containerd, "containerd.sock"),
      layout.socketPath,
    ]),
  );
  for (const path of removed) expect(existsSync(path)).toBe(false);
  expect(existsSync(join(containerd, "containerd.toml"))).toBe(true);
  expect(await removeEngineLeftovers(layout)).toEqual([]);
});

test("a containerd that outlived its dockerd keeps its files, so that the next dockerd can take it over", async () => {
  const containerd = join(layout.execRoot, "containerd");
  await leaveLivingSocket(join(containerd, "containerd.sock"));
  writeFileSync(join(containerd, "containerd.pid"), String(await processNamed("containerd")));
  writeFileSync(layout.pidFile, "not a number");
  expect(await removeEngineLeftovers(layout)).toEqual([layout.pidFile]);
});

test("nothing of a living dockerd is touched", async () => {
  await leaveLivingSocket(layout.socketPath);
  writeFileSync(layout.pidFile, String(await processNamed("dockerd")));
  expect(await removeEngineLeftovers(layout)).toEqual([]);
});

test("a folder in the socket's place goes if it is empty", async () => {
  mkdirSync(layout.socketPath);
  expect(await removeEngineLeftovers(layout)).toEqual([`${layout.socketPath}/`]);
  expect(existsSync(layout.socketPath)).toBe(false);
});

test("a missing run folder is nothing to clean", async () => {
  rmSync(root, { recursive: true });
  expect(await removeEngineLeftovers(layout)).toEqual([]);
});

test("a zombie dockerd does not count as living", async () => {
  const program = join(root, "dockerd");
  copyFileSync("/bin/sleep", program);
  // The shell's child ends at once and is never waited for, since the shell has become a program that does not know of it.
  const parent = spawn("/bin/sh", ["-c", `"${program}" 0 & echo $!; exec sleep 600`], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  closing.push(() => parent.kill("SIGKILL"));
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(line.toString());
  writeFileSync(layout.pidFile, String(pid));
  await expect.poll(() => livingPid(layout.pidFile, "dockerd"), { timeout: 5_000 }).toBeNull();
  expect(existsSync(`/proc/${pid}`)).toBe(true);
});
