/** Runs on the OCI runtime that a task names: read back from the kernel on crun, refused in words where the engine has none such. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import Docker from "dockerode";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDockerEngine } from "../../../src/sandbox/docker/docker-engine.ts";
import { livingPid } from "../../../src/sandbox/docker/engine-leftovers.ts";
import type { Engine } from "../../../src/sandbox/sandbox.ts";
import { MIB, openRig, QUIET, type Rig } from "./rig.ts";

const MAIN = join(import.meta.dirname, "..", "setup", "private-engine-main.ts");
const UNIFIED = "/sys/fs/cgroup/unified";
const IMAGE = "bulkhead-test/few-programs:latest";
const isRoot = process.getuid?.() === 0;

/** What its image needs: a second engine has none, and copying a whole one over takes longer than the tests. */
function fewPrograms(): Buffer {
  const programs = ["/bin/sh", "/bin/cat", "/bin/sleep"];
  const libraries =
    run("ldd", programs)
      .toString()
      .match(/\/\S+\.so\S*/g) ?? [];
  const files = [...new Set([...programs, ...libraries])].map((path) => path.slice(1));
  return run("tar", ["--dereference", "-cf", "-", "-C", "/", ...files]);
}

function run(command: string, args: readonly string[]): Buffer {
  const { status, stdout, stderr } = spawnSync(command, args, { maxBuffer: 64 * MIB });
  if (status !== 0) throw new Error(`${command}: ${stderr?.toString() ?? "cannot be started"}`);
  return stdout;
}

describe("a runtime that the engine has", () => {
  let root = "";
  let rig: Rig;
  let engine: Engine;

  beforeAll(async () => {
    if (!isRoot) return;
    if (!existsSync("/usr/bin/crun")) run("apt-get", ["install", "-y", "--no-install-recommends", "crun"]);
    root = mkdtempSync(join(tmpdir(), "bh-crun-"));
    // crun refuses the mixture of both cgroup versions: the engine gets a view of the machine without the second one.
    const script = `if [ -d ${UNIFIED} ]; then umount ${UNIFIED}; fi; exec "$@"`;
    const start = [process.execPath, MAIN, root, "--add-runtime", "crun=/usr/bin/crun"];
    run("unshare", ["--net", "--mount", "sh", "-c", script, "sh", ...start]);
    const docker = new Docker({ socketPath: join(root, "docker.sock") });
    const [repo, tag] = IMAGE.split(":");
    const imported = await docker.importImage(Readable.from([fewPrograms()]), { repo, tag });
    imported.resume();
    await new Promise((resolve, reject) => imported.on("end", resolve).on("error", reject));
    rig = await openRig();
    const endpoint = `unix://${root}/docker.sock`;
    engine = await createDockerEngine({ endpoint, logger: QUIET, probeDir: root });
  }, 60_000);

  afterAll(async () => {
    if (!isRoot) return;
    await engine?.close();
    await rig?.close();
    const pidFile = join(root, "docker.pid");
    const pid = livingPid(pidFile, "dockerd");
    if (pid !== null) process.kill(pid, "SIGTERM");
    const deadlineMs = Date.now() + 20_000;
    while (livingPid(pidFile, "dockerd") !== null && Date.now() < deadlineMs) await delay(50);
    expect(livingPid(pidFile, "dockerd")).toBeNull();
    rmSync(root, { recursive: true, force: true });
  }, 30_000);

  test.each([null, "runc", "crun"])(
    "%s: hardened, with its caps read back from the kernel",
    async (runtime) => {
      if (!isRoot) return expect(process.getuid?.()).not.toBe(0);
      expect((await engine.describe()).runtimes).toEqual(expect.arrayContaining(["runc", "crun"]));
      const script =
        "cat /proc/self/status; while [ ! -e /tmp/end ]; do sleep 0.1; done; echo > /refused; exit 3";
      const spec = rig.spec(["/bin/sh", "-c", script], { image: IMAGE, runtime, caps: { pids: 32 } });
      const created = await engine.create(spec);
      if (!created.ok) throw new Error(JSON.stringify(created.error));
      const said: string[] = [];
      try {
        const docker = new Docker({ socketPath: join(root, "docker.sock") });
        const { HostConfig } = await docker.getContainer(created.value.id).inspect();
        expect(HostConfig.Runtime).toBe(runtime ?? "runc");
        const started = await created.value.start(({ bytes }) => void said.push(bytes.toString()), {
          strict: true,
        });
        if (!started.ok) throw new Error(JSON.stringify(started.error));
        const { caps } = started.value;
        const states = Object.fromEntries(caps.map(({ cap, state }) => [cap, state]));
        expect(states).toMatchObject({
          cpus: "enforced",
          memory: "enforced",
          pids: "enforced",
          openFiles: "enforced",
        });
        expect(caps.find(({ cap }) => cap === "pids")?.actual).toBe(32);
        const { State } = await docker.getContainer(created.value.id).inspect();
        run("touch", [`/proc/${State.Pid}/root/tmp/end`]);
        const exit = await started.value.ended;
        expect(exit).toMatchObject({ exitCode: 3, failure: { reason: "exit", exitCode: 3 } });
        expect(exit.use.peakMemoryBytes).toBeGreaterThan(0);
      } finally {
        await created.value.remove();
      }
      const output = said.join("");
      // No privilege gained, no capability left, system calls filtered, the root file system read-only.
      expect(output).toMatch(/^NoNewPrivs:\s+1$/m);
      expect(output).toMatch(/^CapBnd:\s+0+$/m);
      expect(output).toMatch(/^Seccomp:\s+2$/m);
      expect(output).toContain("/refused: Read-only file system");
    },
  );
});

test("one that the engine lacks fails the create, with the engine's words", async () => {
  const rig = await openRig();
  try {
    const created = await rig.engine.create(rig.spec(["true"], { runtime: "no-such-runtime" }));
    if (created.ok) await created.value.remove();
    expect(created.ok ? null : created.error).toMatchObject({
      reason: "host-error",
      phase: "create",
      message: expect.stringContaining("no-such-runtime") as string,
    });
    expect(await rig.leftovers()).toEqual([]);
  } finally {
    await rig.close();
  }
});
