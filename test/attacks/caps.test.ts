/** Attempts to take more of the machine than was given: each resource, by the plainest way to use it up (rows D1, P7). */
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { createRepository, createRig } from "../support/bulkhead-cli.ts";
import { endRig } from "../support/e2e-rig.ts";
import {
  type Evidences,
  idsOf,
  plantScripts,
  python,
  runInBulkhead,
  runInPlainContainer,
  type ScriptAttack,
  scriptAttacks,
} from "./support/script-attacks.ts";

const PLAIN = "a plain container without limits";
const BUSY = "a plain container without limits, measured";

/** Sizes are above the caps below and far under what a machine of the tests has. */
const CAPS = { cpus: 2, memory: "128m", pids: 64, open_files: 256, disk: "32m", tmp: "16m" };
const SLOW_CAPS = {
  cpus: 0.25,
  memory: "128m",
  pids: 64,
  disk: "32m",
  io: { read_bytes: "4MiB", write_bytes: "4MiB" },
};

const makeFiles = (directory: string, count: number) =>
  python(`
import shutil
d = "${directory}/many"; os.mkdir(d); made = 0
try:
    for made in range(${count}): os.mknod(f"{d}/{made}")
    print("made", made); code = 0
except OSError as e: print(made, e); code = 1
shutil.rmtree(d); sys.exit(code)`);

const writeMiB = (path: string, count: number) =>
  `dd if=/dev/zero of=${path} bs=1M count=${count} conv=fsync; r=$?; rm -f ${path}; exit $r`;

/** Ends with 0 where the transfer was at twice the cap or faster. */
const transfer = (what: string) =>
  python(`
import subprocess
subprocess.run("dd if=/dev/zero of=/workspace/block bs=1M count=8 oflag=direct", shell=True, check=True) if "if=/workspace" in "${what}" else None
began = time.monotonic()
subprocess.run("dd ${what} bs=1M count=8", shell=True, check=True)
rate = 8 / (time.monotonic() - began)
subprocess.run(["rm", "-f", "/workspace/block"]); print(rate, "MiB/s"); sys.exit(0 if rate > 8 else 1)`);

const ATTACKS: readonly ScriptAttack[] = [
  {
    id: "caps/memory",
    claim: "takes more memory than the cap",
    baseline: PLAIN,
    script: python("x = bytearray(300 << 20); x[::4096] = b'1' * len(x[::4096]); print(len(x))"),
  },
  {
    id: "caps/shared-segments",
    claim: "takes the memory as System V shared memory, which no process need hold",
    baseline: PLAIN,
    script: python(`
libc.shmat.restype = ctypes.c_void_p
shm = libc.shmget(0, 300 << 20, 0o1600); at = libc.shmat(shm, None, 0); libc.shmctl(shm, 0, None)
ctypes.memset(at, 1, 300 << 20); print(shm, at)`),
  },
  {
    id: "caps/shared-memory-files",
    claim: "fills /dev/shm",
    baseline: PLAIN,
    script: writeMiB("/dev/shm/fill", 40),
  },
  {
    id: "caps/scratch-space",
    claim: "fills /tmp beyond its size",
    baseline: PLAIN,
    script: writeMiB("/tmp/fill", 64),
  },
  {
    id: "caps/scratch-files",
    claim: "makes so many empty files in /tmp that kernel memory goes into inodes",
    baseline: PLAIN,
    script: makeFiles("/tmp", 8000),
  },
  {
    id: "caps/disk",
    claim: "writes more to the workspace than the cap",
    baseline: PLAIN,
    script: writeMiB("/workspace/fill", 64),
  },
  {
    id: "caps/disk-reserved",
    claim: "reserves blocks of the disk without writing them",
    baseline: PLAIN,
    script: python(`
f = os.open("/workspace/reserved", os.O_RDWR | os.O_CREAT)
try: os.posix_fallocate(f, 0, 200 << 20); print("reserved"); code = 0
except OSError as e: print(e); code = 1
os.remove("/workspace/reserved"); sys.exit(code)`),
  },
  {
    id: "caps/disk-files",
    claim: "uses up the inodes of the disk",
    baseline: PLAIN,
    script: makeFiles("/workspace", 17_500),
  },
  {
    id: "caps/processes",
    claim: "starts processes without end (here: 200)",
    baseline: PLAIN,
    script: python(`
started = 0
try:
    for started in range(200):
        if os.fork() == 0: os.close(1); os.close(2); time.sleep(30); os._exit(0)
    print(started)
except OSError as e: print(started, e); sys.exit(1)`),
  },
  {
    id: "caps/threads",
    claim: "starts threads without end (here: 200)",
    baseline: PLAIN,
    script: python(`
import threading
try:
    for _ in range(200): threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
    print(threading.active_count(), flush=True); os._exit(0)
except RuntimeError as e: print(threading.active_count(), e, flush=True); os._exit(1)`),
  },
  {
    id: "caps/open-files",
    claim: "opens files without end (here: 1000), having raised its own limit",
    baseline: PLAIN,
    script: python(`
import resource
try: resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
except (ValueError, OSError) as e: print(e)
try: held = [open("/dev/null") for _ in range(1000)]; print(len(held))
except OSError as e: print(e); sys.exit(1)`),
  },
  {
    id: "caps/zombies",
    claim: "leaves dead processes that nobody collects, until no new one can be started",
    baseline: PLAIN,
    script: python(`
def leave():
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
for _ in range(200): leave()
time.sleep(0.3)
def state(pid):
    try: return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
    except OSError: return ""
dead = sum(state(pid) == "Z" for pid in os.listdir("/proc") if pid.isdigit())
print(dead); sys.exit(0 if dead >= 100 else 1)`),
  },
  {
    id: "caps/processor",
    claim: "takes more of the processor than the cap, with as many processes as it can",
    baseline: BUSY,
    // As little as 0.4 of a core, since the machine may be busy; the cap is a quarter.
    script: python(`
began = time.monotonic()
children = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        while time.monotonic() - began < 3: pass
        os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
t = os.times(); share = (t.children_user + t.children_system) / (time.monotonic() - began)
print(share, "cores"); sys.exit(0 if share > 0.4 else 1)`),
  },
  {
    id: "caps/disk-writes",
    claim: "writes to the disk faster than the cap",
    baseline: BUSY,
    script: transfer("if=/dev/zero of=/workspace/block oflag=direct"),
  },
  {
    id: "caps/disk-reads",
    claim: "reads from the disk faster than the cap",
    baseline: BUSY,
    script: transfer("if=/workspace/block of=/dev/null iflag=direct"),
  },
];

const rig = createRig();
const baselines = new Map<string, Evidences>();
let guarded: Evidences;

beforeAll(async () => {
  const repository = createRepository(join(rig.root, "repo"), { "README.md": "hello\n" });
  plantScripts(repository, ATTACKS);
  const quick = idsOf(ATTACKS, PLAIN);
  const slow = idsOf(ATTACKS, BUSY);
  baselines.set(PLAIN, await runInPlainContainer(repository, ["--user", "0"], quick));
  baselines.set(BUSY, await runInPlainContainer(repository, ["--user", "0"], slow));
  guarded = new Map([
    ...(await runInBulkhead(rig, repository, { ids: quick, caps: CAPS })),
    ...(await runInBulkhead(rig, repository, { ids: slow, caps: SLOW_CAPS })),
  ]);
});

afterAll(() => endRig(rig));

describe("caps", () => {
  scriptAttacks(ATTACKS, { baselines, bulkhead: () => guarded });
});
