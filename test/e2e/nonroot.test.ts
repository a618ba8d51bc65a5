/** A user of the engine's group, without root: workspaces are copied, everything is the user's own (rows A17, P5). */
import { spawnSync } from "node:child_process";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunViewJson } from "../../src/observe/run-view-json.ts";
import { createRig, type Rig } from "../support/bulkhead-cli.ts";
import { endRig, expectCode, SMALL, statesOf, taskOf } from "../support/e2e-rig.ts";
import { createOtherUser, type OtherUser } from "../support/other-user.ts";

let rig: Rig;
let user: OtherUser;
let repository: string;
let plan: string;

beforeAll(() => {
  // Making a user takes root; the test itself gives it up again.
  expect(process.getuid?.(), "this test has to start as root").toBe(0);
  rig = createRig();
  user = createOtherUser(rig);
  repository = join(rig.root, "repo");
  plan = join(rig.root, "plan.json");
  user.sh(
    `mkdir '${repository}'; cd '${repository}'; git init -q -b main; mkdir src; echo a > src/a.txt; echo gone > gone.txt; printf '#!/bin/sh\\n' > run.sh; chmod 755 run.sh
git add -A; git -c user.name=u -c user.email=u@example.org commit -qm start`,
    rig.root,
  );
  writeFileSync(
    plan,
    JSON.stringify({
      defaults: SMALL,
      tasks: [
        {
          id: "first",
          run: 'test "$(id -u)" = 10001; git status --porcelain; echo b >> src/a.txt; mkdir new; echo n > new/ü.txt; chmod +x src/a.txt; rm gone.txt; ln -s src/a.txt link',
        },
        {
          id: "second",
          depends_on: ["first"],
          run: "grep -qx b src/a.txt && test ! -e gone.txt && test -L link && bulkhead-bus get-file first src/a.txt > copy.txt && git status --porcelain",
        },
        { id: "fails", run: "exit 3" },
      ],
    }),
  );
});
afterAll(async () => {
  try {
    await endRig(rig);
  } finally {
    user.dispose();
  }
});

async function status(): Promise<RunViewJson> {
  return JSON.parse(expectCode(await user.run(["status", "--json"], repository), 0).stdout);
}

/** What below the rig does not belong to the user. */
function foreignFiles(): string {
  return spawnSync("find", [rig.root, "!", "-uid", String(user.uid)], { encoding: "utf8" }).stdout;
}

test("without the group the engine cannot be reached, and the hint says how to get there", async () => {
  const refused = await user.run(["run", plan, "--engine", "unix:///var/run/docker.sock"], repository, false);
  expect(refused.code).toBe(3);
  expect(refused.stderr).toContain(
    "unix:///var/run/docker.sock (--engine): permission denied: add yourself to the group that owns the socket",
  );
});

test("a run works on copies and says why they are copies", async () => {
  const ran = expectCode(await user.run(["run", plan], repository), 1);
  expect(ran.stdout).toContain("workspaces are copied: ");
  const run = await status();
  expect(statesOf(run)).toEqual({ first: "succeeded", second: "succeeded", fails: "failed" });
  const why = "workspaces are copied: bulkhead does not run as root, which mounting takes";
  expect(run.warnings.map(({ message }) => message)).toContain(why);
  // Once a run, not once a task.
  expect(run.warnings.filter(({ message }) => message === why)).toHaveLength(1);
  expect(taskOf(run, "first")).toMatchObject({ driver: "copy", patch: { files: 4 } });
  expect(taskOf(run, "first").caps.find(({ cap }) => cap === "memory")).toMatchObject({ state: "enforced" });
  expect(taskOf(run, "second")).toMatchObject({ driver: "copy", patch: { files: 1 } });
  expect(taskOf(run, "fails").failure).toMatchObject({ reason: "exit", data: { exitCode: 3 } });
});

test("apply gives files owned by the user, with their modes; undo takes them back", async () => {
  expectCode(await user.run(["apply", "-y", "--allow", "executable-bit,symlink"], repository), 0);
  expect(user.sh("git status --porcelain --untracked-files=all", repository).split("\n").toSorted()).toEqual(
    ["", "D  gone.txt", "M  src/a.txt", "A  copy.txt", "A  link", 'A  "new/\\303\\274.txt"'].toSorted(),
  );
  for (const name of ["src/a.txt", "new/ü.txt", "copy.txt"]) {
    expect(statSync(join(repository, name)).uid).toBe(user.uid);
  }
  expect(statSync(join(repository, "src/a.txt")).mode & 0o111).not.toBe(0);
  expectCode(await user.run(["undo"], repository), 0);
  expect(user.sh("git status --porcelain --untracked-files=all", repository)).toBe("");
});

test("nothing below its directories belongs to anybody else", () => {
  expect(foreignFiles()).toBe(`${plan}\n`);
});
