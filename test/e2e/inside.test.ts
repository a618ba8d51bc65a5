/** What a task finds inside its container: a repository that works, nothing that it was not given (rows A2-A5, A11, D3, D4, P1, P2, P4). */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunViewJson } from "../../src/observe/run-view-json.ts";
import { commitAll, createRepository, createRig, git, type Rig } from "../support/bulkhead-cli.ts";
import {
  endRig,
  expectCode,
  outputOf,
  SMALL,
  statesOf,
  statusOf,
  taskOf,
  writePlan,
} from "../support/e2e-rig.ts";

const CANARY = "canary-of-the-client";

let rig: Rig;

beforeAll(() => {
  rig = createRig();
});
afterAll(() => endRig(rig));

/** A repository with ignored secrets, odd names, and a config that would break every commit. */
function createUnfriendlyRepository(): string {
  const path = createRepository(join(rig.root, "repo"), {
    ".gitignore": ".env\nbuild/\n",
    "src/app.py": "print('app')\n",
    "src/util.py": "UTIL = 1\n",
    "docs/guide.md": "# guide\n",
    "données/größe – 編集.txt": "naïve\n",
    'sp ace/quo"te.txt': "q\n",
    "run.sh": "#!/bin/sh\necho run\n",
  });
  chmodSync(join(path, "run.sh"), 0o755);
  commitAll(path, "executable");
  writeFileSync(join(path, ".env"), "TOKEN=secret-of-the-user\n");
  mkdirSync(join(path, "build"));
  writeFileSync(join(path, "build/out.bin"), "built");
  writeFileSync(join(path, "untracked.txt"), "not committed\n");
  for (const hook of ["pre-commit", "commit-msg", "post-checkout"]) {
    writeFileSync(join(path, ".git/hooks", hook), "#!/bin/sh\necho 'a hook ran' >&2\nexit 1\n", {
      mode: 0o755,
    });
  }
  for (const [key, value] of [
    ["commit.gpgsign", "true"],
    ["user.signingkey", "no-such-key"],
    ["core.autocrlf", "true"],
    ["core.fsmonitor", "/nonexistent-monitor"],
    ["user.name", "The User"],
    ["user.email", "user@example.org"],
  ] as const) {
    git(path, "config", key, value);
  }
  return path;
}

const CHECK = 'set -eu; fail() { echo "FAIL: $*"; exit 1; };';

const TASKS = [
  {
    id: "git",
    shell: "bash",
    run: `${CHECK}
test "$(id -u):$(id -g)" = 10001:10001 || fail uid "$(id)"
test -z "$(git status --porcelain)" || fail "not clean at the start: $(git status --porcelain)"
git diff --exit-code HEAD
test "$(git log --format=%s | wc -l)" = 1 || fail history
test -x run.sh && test ! -x src/app.py || fail modes
echo "print('changed')" >> src/app.py
echo new > 'neu – 新.txt'
git diff --stat | grep -q src/app.py || fail diff
git add -A
git commit -qm 'Ändere die App' || fail commit
git log -1 --format='%s|%an' | tee /dev/stderr
test -z "$(git status --porcelain)" || fail "not clean after the commit"
git show --stat HEAD | grep -q src/app.py || fail show
git checkout -qb topic
git rm -q docs/guide.md
git commit -qm 'Remove the guide'
git stash list`,
  },
  {
    id: "network",
    run: `${CHECK}
test "$(ls /sys/class/net)" = lo || fail "$(ls /sys/class/net)"
test "$(sed 1d /proc/net/route | wc -l)" = 0 || fail routes
getent hosts localhost || fail localhost
if curl -s -m 3 http://192.0.2.1/; then fail "a packet left"; fi
python3 -c "
import socket, threading
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()
socket.create_connection(s.getsockname()).close()
try:
    socket.socket(40)
    raise SystemExit('FAIL: vsock')
except OSError: pass
"`,
  },
  { id: "environment", env: { GIVEN: "größe", NUMBER: 7 }, run: "env | sort" },
  {
    id: "files",
    title: "Ein Titel",
    priority: 5,
    context: {
      files: ["src/app.py"],
      acceptance: ["es läuft"],
      prohibited: ["kein Netz"],
      notes: "Notiz",
    },
    run: `${CHECK}
cd /run/bulkhead
for f in context.json workspace_manifest.json run_metadata.json; do
  test -r $f || fail "$f missing"; if echo x 2>/dev/null >> $f; then fail "$f can be written"; fi
done
until jq -e '.caps_in_force != null' run_metadata.json >/dev/null; do sleep 0.1; done
jq -cn --slurpfile c context.json --slurpfile m workspace_manifest.json --slurpfile r run_metadata.json '{context: $c[0], manifest: $m[0], metadata: $r[0]}'`,
  },
  {
    id: "door",
    run: `${CHECK}
curl -sS --unix-socket "$BULKHEAD_DOOR" http://bus/rpc -d '{"jsonrpc":"2.0","id":"c1","method":"ping","params":{}}' | jq -e '.id == "c1" and (.error | not)' || fail ping
curl -sS --unix-socket "$BULKHEAD_DOOR" http://bus/rpc -d '{"jsonrpc":"2.0","id":2,"method":"get_file","params":{"task_id":"git","path":"src/app.py"}}' | jq -e '.error.message' || fail "a task that is no dependency was read"
printf '{"jsonrpc":"2.0","id":3,"method":"get_file","params":{"task_id":"door","path":"src/util.py"}}\\n' | timeout 5 socat -t 5 - UNIX-CONNECT:"$BULKHEAD_DOOR" | grep -q 'UTIL = 1' || fail "own file by socat"
test "$(bulkhead-bus get-file door 'données/größe – 編集.txt')" = naïve || fail "odd name"
bulkhead-bus context | jq -e '.task == "door"'
test "$(ls /run/bulkhead | tr '\\n' ' ')" = 'context.json door.sock run_metadata.json workspace_manifest.json ' || fail "$(ls /run/bulkhead)"`,
  },
  {
    id: "ignored",
    run: `${CHECK}
test ! -e .env || fail .env; test ! -e build || fail build; test ! -e untracked.txt || fail untracked
test "$(cat 'données/größe – 編集.txt')" = naïve || fail "non-ASCII name"
test "$(cat 'sp ace/quo"te.txt')" = q || fail "odd name"
if grep -rq secret-of-the-user / --include=.env 2>/dev/null; then fail "the secret is somewhere"; fi
mkdir build; echo left > build/x; echo more >> 'données/größe – 編集.txt'; echo "KEY=1" > .env`,
  },
  {
    id: "extra",
    files: { extra: [".env", "missing.cfg"] },
    run: `${CHECK} grep -q secret-of-the-user .env || fail "the listed file is not here"; test ! -e build`,
  },
  {
    id: "subset",
    files: { include: ["src/"], exclude: ["src/util.py"] },
    run: `${CHECK}
test -e src/app.py || fail include; test ! -e src/util.py || fail exclude; test ! -e docs || fail docs; test ! -e run.sh || fail run.sh
test -z "$(git status --porcelain)" || fail "status: $(git status --porcelain)"
echo "# more" >> src/app.py`,
  },
  {
    id: "confined",
    run: `${CHECK}
if touch /usr/x 2>/dev/null; then fail "the root can be written"; fi
touch /tmp/x "$HOME/x" || fail scratch
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || fail "$(grep CapEff /proc/self/status)"
grep -q '^NoNewPrivs:[[:space:]]*1' /proc/self/status || fail nnp
grep -q '^Seccomp:[[:space:]]*2' /proc/self/status || fail seccomp
if grep -q '${CANARY}' /proc/*/environ 2>/dev/null; then fail canary; fi
if ls -d /var/run/docker.sock 2>/dev/null; then fail "engine socket"; fi
grep -Ev ' (/|/workspace|/run/bulkhead|/opt/bulkhead|/etc/(hosts|hostname|resolv.conf)|/tmp|/home/agent|/proc.*|/sys.*|/dev.*|/sbin/docker-init|/usr/sbin/docker-init) ' /proc/mounts && fail "a mount too many" || true
nl -ba /proc/self/mounts | grep ' /run/bulkhead ' | grep -q '[ ,]ro[ ,]' || fail "the door can be written"`,
  },
];

describe("inside the container", () => {
  let repository: string;
  let status: RunViewJson;
  let texts: Record<string, string>;
  let head: string;

  beforeAll(async () => {
    repository = createUnfriendlyRepository();
    head = git(repository, "rev-parse", "HEAD").trim();
    const plan = writePlan(rig, { defaults: SMALL, tasks: TASKS });
    await rig.run(["run", plan, "--slots", "4"], { cwd: repository, env: { CANARY, GITHUB_TOKEN: CANARY } });
    status = await statusOf(rig);
    texts = Object.fromEntries(
      await Promise.all(TASKS.map(async ({ id }) => [id, await outputOf(rig, id)] as const)),
    );
  });

  const filesOf = async (id: string): Promise<string[]> => {
    const { stdout } = expectCode(await rig.run(["diff", "latest", id, "--json"]), 0);
    const [task] = JSON.parse(stdout).tasks as Array<{ changes: Array<{ path: string; kind: string }> }>;
    return (task?.changes ?? []).map(({ path, kind }) => `${kind} ${path}`).toSorted();
  };

  test.each(TASKS.map(({ id }) => id))("%s: what the task checks itself holds", (id) => {
    expect(texts[id]).not.toContain("FAIL");
    expect({ [id]: statesOf(status)[id], output: texts[id] }).toMatchObject({ [id]: "succeeded" });
  });

  test("commits made inside come out as one patch against the snapshot", async () => {
    expect(texts["git"]).toContain("Ändere die App|");
    expect(texts["git"]).not.toContain("a hook ran");
    expect(await filesOf("git")).toEqual([
      "added neu – 新.txt",
      "deleted docs/guide.md",
      "modified src/app.py",
    ]);
    expect(git(repository, "rev-parse", "HEAD").trim()).toBe(head);
  });

  test("the environment is what was listed, and nothing else", () => {
    const names = (texts["environment"] ?? "")
      .split("\n")
      .map((line) => line.slice(0, line.indexOf("=")))
      .filter((name) => name !== "");
    expect(names).toEqual(
      [
        "BULKHEAD_ATTEMPT",
        "BULKHEAD_DOOR",
        "BULKHEAD_RUN",
        "BULKHEAD_TASK",
        "GIVEN",
        "HOME",
        "LANG",
        "LC_ALL",
        "LOGNAME",
        "NUMBER",
        "PATH",
        "PWD",
        "TERM",
        "USER",
        "XDG_CACHE_HOME",
      ].toSorted(),
    );
    expect(texts["environment"]).toContain("GIVEN=größe\n");
    expect(texts["environment"]).toContain("LANG=C.UTF-8\n");
    expect(texts["environment"]).not.toContain(CANARY);
  });

  test("the three files about the attempt say what is true", () => {
    const { context, manifest, metadata } = JSON.parse(texts["files"] ?? "{}");
    expect(context).toMatchObject({
      run: status.run_id,
      task: "files",
      attempt: 1,
      title: "Ein Titel",
      base_commit: head,
      parents: [],
      files: ["src/app.py"],
      acceptance: ["es läuft"],
      prohibited: ["kein Netz"],
      notes: "Notiz",
      time_limit_ms: 60_000,
    });
    const blob = git(repository, "rev-parse", "HEAD:src/app.py").trim();
    expect(JSON.stringify(manifest)).toContain(blob);
    expect(JSON.stringify(manifest)).toContain("données/größe – 編集.txt");
    expect(JSON.stringify(manifest)).not.toContain(".env");
    expect(metadata).toMatchObject({
      run: status.run_id,
      task: "files",
      agent: { name: "run", argv0: "/bin/sh" },
      image: { name: "bulkhead/agent:latest", digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
      caps: { memoryBytes: 64 * 1024 ** 2, pids: 64 },
    });
    expect(metadata.caps_in_force).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ cap: "memory", state: "enforced", actual: 64 * 1024 ** 2 }),
      ]),
    );
    expect(
      Math.abs(Date.parse(metadata.started_at) - (taskOf(status, "files").started_ms ?? 0)),
    ).toBeLessThan(5_000);
  });

  test("ignored files made inside do not come out, and are counted", async () => {
    expect(await filesOf("ignored")).toEqual(["modified données/größe – 編集.txt"]);
    expect(taskOf(status, "ignored").patch).toMatchObject({ ignored_files: 2 });
  });

  test("a listed file that is not there is told of; a listed secret is not part of the patch", async () => {
    expect(status.warnings).toEqual([{ task_id: "extra", message: expect.stringContaining("missing.cfg") }]);
    expect(await filesOf("extra")).toEqual([]);
  });

  test("files that were left out of the workspace are not deleted by the patch", async () => {
    expect(await filesOf("subset")).toEqual(["modified src/app.py"]);
  });
});

describe("other shapes of repositories", () => {
  const check = `${CHECK} test -z "$(git status --porcelain)" || fail "$(git status --porcelain)"; echo more >> a.txt; git add -A; git commit -qm more; git log --oneline`;

  test("a linked worktree on its own branch", async () => {
    const main = createRepository(join(rig.root, "main"), { "a.txt": "a\n" });
    const linked = join(rig.root, "linked tree");
    git(main, "worktree", "add", "-q", "-b", "topic", linked);
    writeFileSync(join(linked, "b.txt"), "only on the topic\n");
    commitAll(linked, "topic");
    const before = readFileSync(join(linked, ".git"), "utf8");
    const plan = writePlan(rig, { defaults: SMALL, tasks: [{ id: "t", run: `${check}; test -e b.txt` }] });
    expectCode(await rig.run(["run", plan], { cwd: linked }), 0);
    const status = await statusOf(rig);
    expect(status).toMatchObject({ repository: linked, base_ref: "topic", state: "succeeded" });
    expect(git(linked, "status", "--porcelain")).toBe("");
    expect(readFileSync(join(linked, ".git"), "utf8")).toBe(before);
    // The commit inside knows nothing of where the real repository lies.
    expect(await outputOf(rig, "t")).not.toContain(rig.root);
  });

  test("a subdirectory, and a work tree with uncommitted changes, which stay out and are told of", async () => {
    const path = createRepository(join(rig.root, "dirty"), { "a.txt": "a\n", "sub/b.txt": "b\n" });
    writeFileSync(join(path, "sub/b.txt"), "changed, not committed\n");
    const plan = writePlan(rig, {
      defaults: SMALL,
      tasks: [{ id: "t", run: `grep -qx b sub/b.txt; ${check}` }],
    });
    const ran = expectCode(await rig.run(["run", plan], { cwd: join(path, "sub") }), 0);
    expect(ran.stderr).toBe(
      "warning: the work tree has uncommitted changes; the run starts from the last commit without them\n",
    );
    expect((await statusOf(rig)).repository).toBe(path);
    expect(readFileSync(join(path, "sub/b.txt"), "utf8")).toBe("changed, not committed\n");
  });

  test("sha256 objects, all of the history", async () => {
    const path = join(rig.root, "sha256");
    mkdirSync(path);
    git(path, "init", "-q", "-b", "main", "--object-format=sha256");
    for (const text of ["one", "two", "three"]) {
      writeFileSync(join(path, "a.txt"), `${text}\n`);
      commitAll(path, text);
    }
    const plan = writePlan(rig, {
      defaults: SMALL,
      tasks: [{ id: "t", files: { history: 0 }, run: `test "$(git log --oneline | wc -l)" = 3; ${check}` }],
    });
    expectCode(await rig.run(["run", plan], { cwd: path }), 0);
    const status = await statusOf(rig);
    expect(taskOf(status, "t").patch?.commit).toMatch(/^[0-9a-f]{64}$/);
    expect((await outputOf(rig, "t")).split("\n").slice(1)).toEqual([
      expect.stringContaining("three"),
      expect.stringContaining("two"),
      expect.stringContaining("one"),
      "",
    ]);
  });
});
