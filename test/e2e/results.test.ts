/** What may not come out of a container, and what does not fit together: refused with every problem named (rows P3, P10, P12). */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunViewJson } from "../../src/observe/run-view-json.ts";
import { type CliResult, createRepository, createRig, git, type Rig } from "../support/bulkhead-cli.ts";
import {
  endRig,
  expectCode,
  readEvents,
  SMALL,
  statesOf,
  statusOf,
  taskOf,
  writePlan,
} from "../support/e2e-rig.ts";

const MIB = 1024 ** 2;

let rig: Rig;
let repository: string;
let ran: CliResult;
let status: RunViewJson;
let proof: string;

beforeAll(async () => {
  rig = createRig();
  proof = join(rig.root, "run-on-the-host");
  repository = createRepository(join(rig.root, "repo"), { "a.txt": "one\ntwo\nthree\n", "b.bin": "x\n" });
  const planted = `#!/bin/sh\\ntouch ${proof}\\n`;
  const plan = writePlan(rig, {
    defaults: SMALL,
    tasks: [
      { id: "fifo", run: "mkfifo pipe; echo x > fine.txt" },
      { id: "link-out", run: "ln -s /etc/passwd stolen; ln -s ../../.. up" },
      { id: "nested", run: "git init -q inner; touch inner/f; echo x > inner/.git/hooks/x" },
      { id: "disk", caps: { disk: "8m" }, run: "head -c 30000000 /dev/zero > big || exit 1" },
      {
        id: "planted",
        run: `printf '${planted}' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; cp .git/hooks/pre-commit evil.sh
git config core.fsmonitor "$PWD/evil.sh"; git config core.hooksPath "$PWD/.git/hooks"; git config diff.external "$PWD/evil.sh"; git config filter.evil.clean "$PWD/evil.sh"
echo '* filter=evil diff=evil' > .gitattributes; echo changed >> a.txt`,
      },
      {
        id: "kinds",
        run: "printf 'a\\000b' > b.bin; : > empty; ln -s a.txt link; chmod +x a.txt; printf 'x' > 'ü ñ.txt'; git mv -f a.txt moved.txt",
      },
      { id: "left", run: "sed -i 's/two/LEFT/' a.txt" },
      { id: "right", run: "sed -i 's/two/RIGHT/' a.txt" },
      { id: "apart", run: "echo apart > apart.txt" },
      { id: "join-bad", depends_on: ["left", "right"], run: "true" },
      {
        id: "join-good",
        depends_on: ["left", "apart"],
        run: "grep -qx LEFT a.txt && test -e apart.txt && echo joined > joined.txt",
      },
      { id: "after-bad", depends_on: ["join-bad"], run: "true" },
    ],
  });
  ran = await rig.run(["run", plan, "--slots", "6"], { cwd: repository });
  status = await statusOf(rig);
});
afterAll(() => endRig(rig));

/** Kind, mode and added lines of every changed path of a task. */
function filesOf(id: string): Record<string, readonly [string, string | null, number | null]> {
  const event = readEvents(rig).find(
    ({ event: one }) => one.type === "task-succeeded" && one.taskId === id,
  )?.event;
  if (event?.type !== "task-succeeded") throw new Error(`no patch of ${id}`);
  return Object.fromEntries(
    event.patch.files.map((file) => [file.path, [file.kind, file.mode, file.insertions] as const]),
  );
}

test("each task ends as it should", () => {
  expect(ran.code, ran.stderr).toBe(1);
  expect(statesOf(status)).toEqual({
    fifo: "failed",
    "link-out": "failed",
    nested: "succeeded",
    disk: "failed",
    planted: "succeeded",
    kinds: "succeeded",
    left: "succeeded",
    right: "succeeded",
    apart: "succeeded",
    "join-bad": "failed",
    "join-good": "succeeded",
    "after-bad": "held",
  });
});

test.each([
  ["fifo", [["pipe", "special-file"]]],
  [
    "link-out",
    [
      ["stolen", "symlink-outside"],
      ["up", "symlink-outside"],
    ],
  ],
] as const)("%s is refused as a whole, with every problem", (id, problems) => {
  const failure = taskOf(status, id).failure;
  expect(failure).toMatchObject({ reason: "result-refused", fault: "agent" });
  expect(failure?.data).toMatchObject({ problems: problems.map(([path, kind]) => ({ path, kind })) });
  expect(taskOf(status, id).patch).toBeNull();
  expect(ran.stdout).toContain(`✗ ${id}: the result was refused: ${problems.length} problem`);
});

test("a full disk is named with its cap", () => {
  expect(taskOf(status, "disk").failure).toMatchObject({
    reason: "disk-full",
    fault: "agent",
    data: { limitBytes: 8 * MIB },
  });
  expect(ran.stdout).toContain("✗ disk: disk full: the workspace may hold 8 MiB of changes");
});

test("nothing that was planted ran on the host, also not through diff", async () => {
  const diff = expectCode(await rig.run(["diff", "latest", "planted"]), 0);
  expect(diff.stdout).toContain("+changed");
  expect(diff.stdout).toContain(".gitattributes");
  expect(existsSync(proof)).toBe(false);
  expect(git(repository, "status", "--porcelain")).toBe("");
});

test("every kind of change comes out", () => {
  expect(filesOf("kinds")).toEqual({
    "a.txt": ["deleted", null, 0],
    "b.bin": ["modified", "100644", null],
    empty: ["added", "100644", 0],
    link: ["added", "120000", 1],
    "moved.txt": ["added", "100755", 3],
    "ü ñ.txt": ["added", "100644", 1],
  });
});

test("a repository made inside comes out as plain files, without its git directory", () => {
  expect(filesOf("nested")).toEqual({ "inner/f": ["added", "100644", 0] });
});

test("patches that do not fit together stop their common child, named with the file", () => {
  expect(taskOf(status, "join-bad").failure).toMatchObject({
    reason: "parents-conflict",
    fault: "task",
    data: { parents: expect.arrayContaining(["left", "right"]), files: ["a.txt"] },
  });
  expect(ran.stdout).toMatch(
    /✗ join-bad: the patches of (left and right|right and left) do not fit together/,
  );
  expect(ran.stdout).toContain("conflict in a.txt");
  expect(taskOf(status, "after-bad")).toMatchObject({ state: "held", held_because: "join-bad" });
  expect(taskOf(status, "join-good").patch).toMatchObject({ files: 1, insertions: 1 });
});
