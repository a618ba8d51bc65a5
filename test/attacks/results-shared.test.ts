/**
 * What one task could do to another by way of what they share (rows A1, P3). The unprotected side gives each agent a work tree of one repository,
 * or a copy made of hard links: the usual ways to have many at little cost.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { RunViewJson } from "../../src/observe/run-view-json.ts";
import { createRepository, createRig } from "../support/bulkhead-cli.ts";
import { endRig, outputOf, SMALL, statusOf, taskOf, writePlan } from "../support/e2e-rig.ts";
import { attack } from "./support/attack.ts";

interface SharedAttack {
  readonly id: string;
  readonly claim: string;
  readonly baseline: "work trees of one repository" | "copies made of hard links";
  /** Run by sh in the attacker's tree, then in the tree of another; `merge` stands for taking over what the first committed. */
  readonly attacker: string;
  readonly victim: string;
  /** The victim builds on the attacker's result. */
  readonly isDependent?: boolean;
}

/** What a victim prints who was caught. */
const CAUGHT = "caught-it";

const ATTACKS: readonly SharedAttack[] = [
  {
    id: "shared/write-in-place",
    claim: "changes a file in the tree of everybody else, by writing into it in place",
    baseline: "copies made of hard links",
    attacker: `printf '${CAUGHT}\\n' > shared.txt`,
    victim: "cat shared.txt",
  },
  {
    id: "shared/hard-link",
    claim: "changes a file in the tree of everybody else, by a second name for it",
    baseline: "copies made of hard links",
    attacker: `ln shared.txt other; printf '${CAUGHT}\\n' > other`,
    victim: "cat shared.txt",
  },
  {
    id: "shared/file-mode",
    claim: "makes a file of everybody else's a program, by its mode",
    baseline: "copies made of hard links",
    attacker: "chmod 777 shared.txt",
    victim: `case "$(stat -c %a shared.txt)" in 777) echo ${CAUGHT};; esac`,
  },
  {
    id: "shared/configuration",
    claim: "has a program run by another task's `git status`, by the configuration of the repository",
    baseline: "work trees of one repository",
    attacker: `git config core.fsmonitor "echo ${CAUGHT} >&2; false"`,
    victim: "git status",
  },
  {
    id: "shared/hooks",
    claim: "has a program run by another task's `git commit`, by a hook of the repository",
    baseline: "work trees of one repository",
    attacker: `h=$(git rev-parse --git-path hooks); mkdir -p "$h"; printf '#!/bin/sh\\necho ${CAUGHT}\\n' > "$h/post-commit"; chmod +x "$h/post-commit"`,
    victim: "git -c user.name=v -c user.email=v@example.org commit -q --allow-empty -m mine",
  },
  {
    id: "shared/branches",
    claim: "moves a branch that another task takes for the repository's",
    baseline: "work trees of one repository",
    attacker: `echo ${CAUGHT} > b.txt; git add -A; git -c user.name=a -c user.email=a@example.org commit -qm x; git update-ref refs/heads/stable HEAD`,
    victim: "git show stable:b.txt || git log --all --oneline",
  },
  {
    id: "shared/stash",
    claim: "leaves a stash that another task takes for its own",
    baseline: "work trees of one repository",
    attacker: `echo ${CAUGHT} > b.txt; git -c user.name=a -c user.email=a@example.org stash -q`,
    victim: "git stash pop -q; cat b.txt",
  },
  {
    id: "shared/dependency-configuration",
    claim: "has a program run in a task that builds on its result, by the repository it worked in",
    baseline: "work trees of one repository",
    isDependent: true,
    attacker: `git config filter.trap.clean "echo ${CAUGHT} >&2; cat"; git config filter.trap.smudge "echo ${CAUGHT} >&2; cat"; echo '*.txt filter=trap' > .gitattributes; echo x >> b.txt`,
    victim: "echo y >> b.txt; git add -A",
  },
  {
    id: "shared/dependency-link",
    claim: "has a task that builds on its result write a hook of its own, through a link",
    baseline: "work trees of one repository",
    isDependent: true,
    attacker: 'ln -s "$(git rev-parse --git-path hooks)" build',
    victim: `mkdir -p build && echo built > build/post-commit && ls "$(git rev-parse --git-path hooks)" | grep -x post-commit > /dev/null && echo ${CAUGHT}`,
  },
];

const rig = createRig();
let repository: string;
let status: RunViewJson;
const slugOf = ({ id }: SharedAttack): string => id.slice("shared/".length);

function createShared(path: string): string {
  return createRepository(path, { "b.txt": "b\n", "shared.txt": "the original\n" });
}

function shell(cwd: string, script: string): string {
  const done = spawnSync("sh", ["-c", script], { cwd, encoding: "utf8", timeout: 30_000 });
  return done.stdout + done.stderr;
}

function runUnprotected(one: SharedAttack): string {
  const root = join(rig.root, "open", slugOf(one));
  const main = createShared(join(root, "main"));
  const [attacker, victim] = [join(root, "attacker"), join(root, "victim")];
  if (one.baseline === "copies made of hard links") {
    execFileSync("cp", ["-al", main, attacker]);
    shell(attacker, one.attacker);
    execFileSync("cp", ["-al", main, victim]);
  } else {
    shell(main, `git worktree add -q -b attacker '${attacker}'; git worktree add -q -b victim '${victim}'`);
    shell(attacker, one.attacker);
    if (one.isDependent === true) {
      const identity = "-c user.name=a -c user.email=a@example.org";
      shell(attacker, `git add -A; git ${identity} commit -qm work`);
      shell(victim, "git merge -q attacker 2> /dev/null");
    }
  }
  return shell(victim, one.victim);
}

beforeAll(async () => {
  repository = createShared(join(rig.root, "repo"));
  const tasks = ATTACKS.flatMap((one) => {
    const [attacker, victim] = [`${slugOf(one)}-attacker`, `${slugOf(one)}-victim`];
    return [
      { id: attacker, priority: 1, run: one.attacker },
      {
        id: victim,
        priority: 9,
        run: `(${one.victim}) 2>&1; true`,
        ...(one.isDependent === true ? { depends_on: [attacker] } : {}),
      },
    ];
  });
  const plan = writePlan(rig, { defaults: SMALL, tasks });
  // One after the other: each victim begins when its attacker has ended.
  const ran = await rig.run(["run", plan, "--slots", "1"], { cwd: repository });
  if (ran.code !== 0 && ran.code !== 1) throw new Error(ran.stdout + ran.stderr);
  status = await statusOf(rig);
});
afterAll(() => endRig(rig));

async function runGuarded(one: SharedAttack): Promise<string> {
  const [attacker, victim] = [`${slugOf(one)}-attacker`, `${slugOf(one)}-victim`].map((id) =>
    taskOf(status, id),
  );
  if (attacker?.ended_ms == null) throw new Error(`${one.id} was not tried`);
  // The trap itself was refused, so nobody builds on it.
  if (attacker.failure?.reason === "result-refused" && victim?.state === "held") return "held";
  if (attacker.state !== "succeeded")
    throw new Error(`${one.id} was not tried: ${await outputOf(rig, attacker.id)}`);
  if (victim?.started_ms == null || victim.started_ms < attacker.ended_ms) {
    throw new Error(`${one.id}: the victim did not come after the attacker`);
  }
  return `${victim.state}: ${await outputOf(rig, victim.id)}`;
}

for (const one of ATTACKS) {
  attack<string>({
    id: one.id,
    claim: one.claim,
    baseline: one.baseline,
    unprotected: () => runUnprotected(one),
    bulkhead: () => runGuarded(one),
    succeeded: (seen) => seen.includes(CAUGHT),
  });
}
