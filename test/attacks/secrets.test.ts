/** What the person who starts a run has and an agent must not get: environment, keys, ignored files, history, what other tasks left (rows A4, D4). */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { commitAll, createRepository, createRig, git } from "../support/bulkhead-cli.ts";
import { endRig, SMALL, statusOf, taskOf } from "../support/e2e-rig.ts";
import {
  type Evidences,
  idsOf,
  PRIVILEGED_OPTIONS,
  plantScripts,
  python,
  runInBulkhead,
  runInPlainContainer,
  runOnHost,
  type ScriptAttack,
  scriptAttacks,
} from "./support/script-attacks.ts";

/** One per place, so that the evidence says where it came from. Never written into a script: a search must not find itself. */
const canary = (place: string) => `canary-${place}-${SUFFIX}`;
const SUFFIX = randomBytes(6).toString("hex");
const SEARCH = "grep -a -o 'canary-[a-z]*-[0-9a-f]*'";

const BY_HAND = "an agent started by hand, with the environment and home of the person";
const MOUNTED = "a container with the work tree mounted";
const PRIVILEGED = "a container with all privileges and the host's namespaces";
const SHARED = "one container for several tasks";

const takes = (place: string) => (evidence: { output: string }) => evidence.output.includes(canary(place));

const ATTACKS: readonly ScriptAttack[] = [
  {
    id: "secrets/environment",
    claim: "reads a key from the environment of the command that started it",
    baseline: BY_HAND,
    script: `env | ${SEARCH}`,
    succeeded: takes("env"),
  },
  {
    id: "secrets/supervisor-environment",
    claim: "reads a key from the environment of another process, the supervisor's or process 1's",
    baseline: PRIVILEGED,
    script: `cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | ${SEARCH} | sort -u`,
    succeeded: takes("env"),
  },
  {
    id: "secrets/command-lines",
    claim: "reads a token from the command line of a process of the host",
    baseline: PRIVILEGED,
    script: `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | ${SEARCH} | sort -u`,
    succeeded: takes("argv"),
  },
  {
    id: "secrets/home",
    claim: "reads keys from the home directory of the person",
    baseline: BY_HAND,
    script: `cat ~/.ssh/id_ed25519 ~/.netrc ~/.aws/credentials ~/.config/*/* 2>/dev/null | ${SEARCH}`,
    succeeded: takes("home"),
  },
  {
    id: "secrets/credential-helper",
    claim: "has the person's git credential helper hand out a password",
    baseline: BY_HAND,
    script: `printf 'protocol=https\\nhost=git.example.org\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill | ${SEARCH}`,
    succeeded: takes("password"),
  },
  {
    id: "secrets/key-agent",
    claim: "uses the person's SSH agent",
    baseline: BY_HAND,
    script: python(`
s = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect(os.environ["SSH_AUTH_SOCK"]); print(s.recv(4096))`),
    succeeded: takes("agent"),
  },
  {
    id: "secrets/ignored-file",
    claim: "reads .env, which git ignores and the person has",
    baseline: MOUNTED,
    script: `cat .env config/local.json 2>/dev/null | ${SEARCH}`,
    succeeded: takes("ignored"),
  },
  {
    id: "secrets/untracked-file",
    claim: "reads a file that was never committed",
    baseline: MOUNTED,
    script: `find . -path ./.git -prune -o -type f -print0 | xargs -0 cat | ${SEARCH}`,
    succeeded: takes("untracked"),
  },
  {
    id: "secrets/remote-url",
    claim: "reads the token in the URL of the repository's remote",
    baseline: MOUNTED,
    script: `cat .git/config .git/*/config 2>/dev/null | ${SEARCH}`,
    succeeded: takes("remote"),
  },
  {
    id: "secrets/history",
    claim: "reads a key that was committed once and removed since",
    baseline: MOUNTED,
    script: `git -c safe.directory='*' log --all --reflog -p | ${SEARCH}`,
    succeeded: takes("history"),
  },
  {
    id: "secrets/objects",
    claim: "reads what a branch, a stash or nothing at all refers to, from git's objects",
    baseline: MOUNTED,
    script: `git -c safe.directory='*' cat-file --batch-all-objects --batch | ${SEARCH} | sort -u`,
    succeeded: takes("stash"),
  },
  {
    id: "secrets/core-dump",
    claim: "has the memory of a crashed program left as a core file in the work tree",
    baseline: MOUNTED,
    script:
      "ulimit -c unlimited; python3 -c 'import os; os.abort()'; for f in core core.*; do if test -s $f; then rm $f; exit 0; fi; done; exit 1",
  },
  {
    id: "secrets/left-in-work-tree",
    claim: "reads what another task left in its work tree",
    baseline: SHARED,
    script: `cat left-behind.txt node_modules/.cache/x 2>/dev/null | ${SEARCH}`,
    succeeded: takes("tree"),
  },
  {
    id: "secrets/left-in-home",
    claim: "reads what another task left in its home, /tmp or /dev/shm",
    baseline: SHARED,
    script: `cat /tmp/left /dev/shm/left "$HOME/left" 2>/dev/null | ${SEARCH}`,
    succeeded: takes("tmp"),
  },
  {
    id: "secrets/planted-hook",
    claim: "is made to run a git hook that another task planted",
    baseline: SHARED,
    script: `git -c safe.directory='*' -c user.name=a -c user.email=a@b commit -q --allow-empty -m x 2>&1 | ${SEARCH}`,
    succeeded: takes("hook"),
  },
  {
    id: "secrets/changed-base",
    claim: "is given a tracked file that another task changed in place, with its old time and size",
    baseline: SHARED,
    script: `cat tool.sh | ${SEARCH}`,
    succeeded: takes("base"),
  },
];

/** What the earlier task does; for the baseline the same words run in the same container. */
const PLANT = (place: (name: string) => string) => `
echo ${place("tree")} > left-behind.txt
for d in /tmp /dev/shm "$HOME"; do echo ${place("tmp")} > $d/left; done
printf '#!/bin/sh\\necho ${place("hook")} >&2\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
cp -p tool.sh /tmp/old; printf '#!/bin/sh\\n# ${place("base")}' | dd of=tool.sh conv=notrunc status=none; touch -r /tmp/old tool.sh
true`;

const rig = createRig();
const baselines = new Map<string, Evidences>();
let guarded: Evidences;
let bystander: ChildProcess;
const keyAgent = createServer((socket) => {
  socket.on("error", () => socket.destroy());
  socket.end(canary("agent"));
});

/** A work tree as people have them. */
function createLivedInRepository(path: string): string {
  createRepository(path, {
    ".gitignore": ".env\nconfig/local.json\n",
    "tool.sh": `#!/bin/sh\n# ${"-".repeat(80)}\n`,
    "keys.txt": `${canary("history")}\n`,
  });
  git(path, "rm", "-q", "keys.txt");
  commitAll(path, "keys do not belong here");
  writeFileSync(join(path, "tool.sh"), `#!/bin/sh\n# ${canary("stash")}\n`);
  git(path, "-c", "user.name=a", "-c", "user.email=a@b", "stash", "-q");
  git(path, "remote", "add", "origin", `https://user:${canary("remote")}@git.example.org/x.git`);
  plantScripts(path, ATTACKS);
  writeFileSync(join(path, ".env"), `KEY=${canary("ignored")}\n`);
  writeFileSync(join(path, "notes.txt"), `${canary("untracked")}\n`);
  return path;
}

beforeAll(async () => {
  const repository = createLivedInRepository(join(rig.root, "repo"));
  const home = join(rig.root, "home");
  mkdirSync(join(home, ".ssh"), { recursive: true });
  writeFileSync(join(home, ".ssh/id_ed25519"), `${canary("home")}\n`);
  writeFileSync(join(home, ".git-credentials"), `https://user:${canary("password")}@git.example.org\n`);
  writeFileSync(join(home, ".gitconfig"), "[credential]\n\thelper = store\n");
  keyAgent.listen(join(rig.root, "agent.sock"));
  await once(keyAgent, "listening");
  const env = {
    ...process.env,
    HOME: home,
    PROVIDER_API_KEY: canary("env"),
    SSH_AUTH_SOCK: join(rig.root, "agent.sock"),
  };
  bystander = spawn("sh", ["-c", "while :; do sleep 1; done", `--token=${canary("argv")}`], {
    env,
    stdio: "ignore",
  });

  baselines.set(BY_HAND, await runOnHost(repository, idsOf(ATTACKS, BY_HAND), env));
  const inContainer = (name: string, options: readonly string[]) =>
    runInPlainContainer(repository, options, idsOf(ATTACKS, name));
  baselines.set(MOUNTED, await inContainer(MOUNTED, ["--user", "0", "--ulimit", "core=-1"]));
  baselines.set(PRIVILEGED, await inContainer(PRIVILEGED, PRIVILEGED_OPTIONS));
  const used = createLivedInRepository(join(rig.root, "used"));
  const plant = ["sh", "-c", `cd /workspace; ${PLANT(canary)}; exec "$@"`, "sh"];
  baselines.set(SHARED, await runInPlainContainer(used, ["--user", "0"], idsOf(ATTACKS, SHARED), plant));

  const earlier = { ...SMALL, id: "earlier", priority: 1, run: PLANT(canary) };
  guarded = await runInBulkhead(rig, repository, { env, tasks: [earlier], argv: ["--slots", "1"] });
  const status = await statusOf(rig);
  expect(taskOf(status, "earlier")).toMatchObject({ state: "succeeded", patch: { files: 2 } });
  expect(taskOf(status, "earlier").ended_ms).toBeLessThanOrEqual(taskOf(status, "attacker").started_ms ?? 0);
});

afterAll(async () => {
  bystander.kill("SIGKILL");
  keyAgent.close();
  await endRig(rig);
});

describe("secrets", () => {
  scriptAttacks(ATTACKS, { baselines, bulkhead: () => guarded });
});
