/**
 * Attacks by what is left behind: a script lays a trap in a work tree, and then people's tools look at the tree. The unprotected side is
 * a checkout on the host, as an agent started by hand would have left it; the other is a task of a real run, whose patch is then
 * shown, tried and taken over onto a branch with everything allowed.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRepository, git, type Rig } from "../../support/bulkhead-cli.ts";
import { expectCode, outputOf, statusOf, taskOf, writePlan } from "../../support/e2e-rig.ts";
import { attack } from "./attack.ts";

export interface ResultAttack {
  readonly id: string;
  readonly claim: string;
  /** Run by sh in the work tree; `@CANARY@` and the like stand for paths of the host. */
  readonly plant: string;
  /** What somebody does with the tree afterwards, in it. `$OUT` is an empty directory. */
  readonly naive: string;
  /** Unless set: the canary was touched. */
  readonly succeeded?: (evidence: ResultEvidence) => boolean;
}

export interface ResultEvidence {
  /** A program of the attacker ran on the host. */
  readonly canary: boolean;
  /** A file of the person's outside the tree is as it was. */
  readonly isPreciousWhole: boolean;
  /** The content of a file that nobody had shown to the task came out. */
  readonly isLeaked: boolean;
  /** The script came to its end: a trap that was not laid would prove nothing. */
  readonly isLaid: boolean;
  /** All that was printed on the way. */
  readonly output: string;
  readonly code: number | null;
}

/** A side's things on the host. */
interface Place {
  readonly root: string;
  readonly repository: string;
  readonly secret: string;
  readonly secretOid: string;
}

const FILES = {
  "a.txt": "one\ntwo\nthree\n",
  "b.txt": "b\n",
  "dir/one": "1\n",
  "dir/two": "2\n",
  "shared.txt": "the original\n",
};

/** Lays out a host: a repository to work on, another with a secret, and room for canaries. */
export function createPlace(root: string): Place {
  const secret = randomBytes(12).toString("hex");
  mkdirSync(join(root, "outside"), { recursive: true });
  writeFileSync(join(root, "outside/secret"), `${secret}\n`);
  const other = createRepository(join(root, "outside/private"), { "secret.txt": `${secret}\n` });
  const repository = createRepository(join(root, "repo"), FILES);
  git(repository, "config", "user.name", "tester");
  git(repository, "config", "user.email", "tester@example.org");
  return { root, repository, secret, secretOid: git(other, "rev-parse", "HEAD:secret.txt").trim() };
}

function slugOf({ id }: Pick<ResultAttack, "id">): string {
  return id.slice(id.indexOf("/") + 1);
}

/** Said by a script that came to its end. */
const LAID = "the trap is laid";

function fill(place: Place, one: ResultAttack): string {
  const paths = {
    CANARY: join(place.root, "canaries", slugOf(one)),
    PRECIOUS: join(place.root, "precious", slugOf(one)),
    OUTSIDE: join(place.root, "outside"),
    OBJECTS: join(place.root, "outside/private/.git/objects"),
    OID: place.secretOid,
  };
  mkdirSync(join(place.root, "canaries"), { recursive: true });
  mkdirSync(join(place.root, "precious"), { recursive: true });
  writeFileSync(paths.PRECIOUS, "precious\n");
  const script = one.plant.replace(
    /@(CANARY|PRECIOUS|OUTSIDE|OBJECTS|OID)@/g,
    (_, name: keyof typeof paths) => paths[name],
  );
  return `set -e\n${script}\necho "${LAID}"`;
}

function evidence(place: Place, one: ResultAttack, output: string, code: number | null): ResultEvidence {
  return {
    canary: existsSync(join(place.root, "canaries", slugOf(one))),
    isPreciousWhole: existsSync(join(place.root, "precious", slugOf(one))),
    isLeaked: output.includes(place.secret),
    isLaid: output.includes(LAID),
    output: output.slice(-6000),
    code,
  };
}

/** Lets the attack work on a checkout of its own and a person's tools look at it. */
function runUnprotected(place: Place, one: ResultAttack): ResultEvidence {
  const work = join(place.root, "open", slugOf(one));
  const out = join(place.root, "out", slugOf(one));
  mkdirSync(join(place.root, "open"), { recursive: true });
  mkdirSync(out, { recursive: true });
  git(place.root, "clone", "-q", place.repository, work);
  const run = (script: string) =>
    spawnSync("sh", ["-c", script], {
      cwd: work,
      encoding: "latin1",
      timeout: 30_000,
      maxBuffer: 64 * 1024 ** 2,
      env: { ...process.env, ...IDENTITY, OUT: out, MAIN: place.repository, PLACE: place.root },
    });
  const planted = run(fill(place, one));
  const looked = run(one.naive);
  const output = `${planted.stdout}${planted.stderr}${looked.stdout}${looked.stderr}`;
  return evidence(place, one, output, looked.status);
}

const IDENTITY = {
  GIT_AUTHOR_NAME: "tester",
  GIT_AUTHOR_EMAIL: "tester@example.org",
  GIT_COMMITTER_NAME: "tester",
  GIT_COMMITTER_EMAIL: "tester@example.org",
};

/** Runs every attack as a task and does with its patch what a person can. Evidence by attack id; 0 stands for a patch that was taken. */
export async function runAsTasks(
  rig: Rig,
  place: Place,
  attacks: readonly ResultAttack[],
): Promise<ReadonlyMap<string, ResultEvidence>> {
  const tasks = attacks.map((one) => ({
    id: slugOf(one),
    timeout: "60s",
    caps: { memory: "256m" },
    env: IDENTITY,
    run: fill(place, one),
  }));
  const plan = writePlan(rig, { tasks });
  const cwd = place.repository;
  const ran = await rig.run(["run", plan, "--slots", "4"], { cwd });
  if (ran.code !== 1) expectCode(ran, 0);
  const status = await statusOf(rig);
  const found = new Map<string, ResultEvidence>();
  const look = async (one: ResultAttack): Promise<void> => {
    const slug = slugOf(one);
    const task = taskOf(status, slug);
    const said = [JSON.stringify(task.failure), await outputOf(rig, slug)];
    let code: number | null = 1;
    if (task.patch !== null && !task.patch.empty) {
      const branch = `try/${slug}`;
      for (const argv of [
        ["diff", "latest", slug],
        ["apply", "latest", slug, "--allow", "all", "--branch", branch, "-y"],
      ]) {
        const done = await rig.run(argv, { cwd });
        said.push(done.stdout, done.stderr);
        code = done.code;
      }
      if (code === 0) {
        said.push(git(cwd, "ls-tree", "-r", branch), git(cwd, "diff", "--no-ext-diff", `main..${branch}`));
      }
    }
    found.set(one.id, evidence(place, one, said.join("\n"), code));
  };
  // Two at a time: each asks three processes.
  const waiting = [...attacks];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await look(next);
  };
  await Promise.all([work(), work()]);
  return found;
}

/** Registers a test for each attack; what came of the tasks is asked when the tests run. */
export function resultAttacks(
  attacks: readonly ResultAttack[],
  open: Place,
  guarded: () => ReadonlyMap<string, ResultEvidence>,
): void {
  for (const one of attacks) {
    const check = (found: ResultEvidence | undefined): ResultEvidence => {
      if (found?.isLaid) return found;
      throw new Error(`${one.id} was not tried: ${found?.output ?? "there is no evidence"}`);
    };
    attack<ResultEvidence>({
      id: one.id,
      claim: one.claim,
      baseline: "a checkout that the attacker worked in, and a person's tools in it",
      unprotected: () => check(runUnprotected(open, one)),
      bulkhead: () => check(guarded().get(one.id)),
      succeeded: one.succeeded ?? (({ canary }) => canary),
    });
  }
}
