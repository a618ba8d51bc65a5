import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRig, type Rig } from "./rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await openRig();
});
afterAll(async () => {
  expect(await rig.leftovers()).toEqual([]);
  await rig.close();
});

/** Processes of the whole machine whose command line has this text. */
function hostProcesses(text: string): number {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(text);
    } catch {
      // Ended while the list was read.
      return false;
    }
  }).length;
}

async function python(script: string): Promise<unknown> {
  const { stdout, stderr } = await rig.run(rig.spec(["python3", "-c", `import json\n${script}`]));
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

describe("a sandbox", () => {
  test("has nothing in its environment but what was given", async () => {
    const env = {
      PATH: "/usr/bin:/bin",
      HOME: "/home/agent",
      LANG: "C.UTF-8",
      TERM: "dumb",
      GREETING: "a=b c",
    };
    const { stdout } = await rig.run(rig.spec(["env", "-0"], { env }));
    expect(stdout.split("\0").filter(Boolean).sort()).toEqual(
      Object.entries(env)
        .map(([name, value]) => `${name}=${value}`)
        .sort(),
    );
  });

  test("is uid and gid 10001 only, without capabilities, without new privileges, filtered", async () => {
    const { stdout } = await rig.run(rig.spec(["sh", "-c", "id -u; id -g; id -G; cat /proc/self/status"]));
    expect(stdout).toContain("10001\n10001\n10001\nName:");
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
      expect(stdout).toMatch(new RegExp(`^${set}:\\t0{16}$`, "m"));
    }
    expect(stdout).toMatch(/^NoNewPrivs:\t1$/m);
    expect(stdout).toMatch(/^Seccomp:\t2$/m);
  });

  test("has an own network with nothing but loopback", async () => {
    const { stdout } = await rig.run(
      rig.spec([
        "sh",
        "-c",
        "tail -n +3 /proc/net/dev | cut -d: -f1; cat /proc/net/route; wc -l </proc/net/fib_trie",
      ]),
    );
    expect(stdout.split("\n")[0]?.trim()).toBe("lo");
    expect(stdout).not.toMatch(/eth|veth|docker/);
  });

  test("can write to /tmp and HOME, run what it wrote there, and to nothing else", async () => {
    const script = `
      for d in / /etc /usr/bin /var /var/tmp /run /opt /root /proc/sys/kernel /sys; do
        ( : > "$d/x" ) 2>/dev/null && echo "wrote $d"
      done
      for d in /tmp "$HOME"; do printf '#!/bin/sh\\necho ran' > "$d/x" && chmod +x "$d/x" && "$d/x"; done
    `;
    expect((await rig.run(rig.spec(["sh", "-c", script]))).stdout).toBe("ran\nran\n");
  });

  test("refuses AF_VSOCK, AF_PACKET and AF_ALG, io_uring, namespaces, keys, bpf and mounts", async () => {
    const numbers = await python(`
import ctypes, socket, platform
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
  r = libc.syscall(*args); return ctypes.get_errno() if r < 0 else "allowed"
x = platform.machine() == "x86_64"
out = {}
for name, family in (("vsock", 40), ("packet", 17), ("alg", 38)):
  try: socket.socket(family, socket.SOCK_STREAM if family == 40 else socket.SOCK_RAW if family == 17 else socket.SOCK_SEQPACKET); out[name] = "allowed"
  except OSError as e: out[name] = e.errno
out["io_uring"] = call(425, 8, 0)
out["clone3"] = call(435, 0, 0)
out["unshare"] = call(272 if x else 97, 0x10000000)
out["keyctl"] = call(250 if x else 219, 0, 0)
out["bpf"] = call(321 if x else 280, 0, 0, 0)
out["mount"] = call(165 if x else 40, 0, 0, 0, 0, 0)
out["userfaultfd"] = call(323 if x else 282, 0)
out["perf"] = call(298 if x else 241, 0, 0, 0, 0, 0)
print(json.dumps(out))`);
    const refused = expect.toSatisfy((errno: unknown) => errno === 1 || errno === 38 || errno === 97);
    expect(numbers).toEqual({
      vsock: refused,
      packet: refused,
      alg: refused,
      io_uring: 38,
      clone3: 38,
      unshare: 1,
      keyctl: 1,
      bpf: 1,
      mount: 1,
      userfaultfd: 1,
      perf: 1,
    });
  });

  test("still runs git, threads, child processes and local sockets", async () => {
    const result = await python(`
import os, socket, subprocess, threading, tempfile
os.chdir(tempfile.mkdtemp())
done = []
t = threading.Thread(target=lambda: done.append(1)); t.start(); t.join()
env = dict(os.environ, GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@x", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@x")
git = lambda *a: subprocess.run(["git", *a], env=env, check=True, capture_output=True, text=True).stdout
git("init", "-q"); open("f", "w").write("x"); git("add", "f"); git("commit", "-qm", "one")
a, b = socket.socketpair(); a.send(b"hi")
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname())
print(json.dumps([done, git("log", "--format=%s").strip(), b.recv(2).decode(), c.getpeername()[0]]))`);
    expect(result).toEqual([[1], "one", "hi", "127.0.0.1"]);
  });

  test("kills everything inside, also what left the session and ignores signals", async () => {
    const marker = `marker-${rig.stateId}`;
    const stubborn = "trap '' TERM HUP INT; while :; do sleep 0.05; done";
    const script = `trap '' TERM; setsid sh -c "${stubborn}" ${marker} & wait; ${stubborn}`;
    const { exit } = await rig.run(rig.spec(["sh", "-c", script]), async (running) => {
      await expect.poll(() => hostProcesses(`${stubborn}\0${marker}`)).toBe(1);
      await Promise.all([running.kill("timeout"), running.kill("timeout")]);
    });
    expect(hostProcesses(marker)).toBe(0);
    expect(exit.failure).toMatchObject({ reason: "timeout", by: "host" });
    expect(exit.exitCode).toBe(137);
  });

  test("does not see the host's processes, name or devices", async () => {
    const { stdout } = await rig.run(
      rig.spec([
        "sh",
        "-c",
        "hostname; ls /proc | grep -c '^[0-9]'; ls /dev | grep -cE '^(sd|vd|nvme|kvm|mem|kmsg)' ",
      ]),
    );
    const [name, processes, devices] = stdout.split("\n");
    expect(name).toBe("sandbox");
    expect(Number(processes)).toBeLessThan(8);
    expect(devices).toBe("0");
  });
});
