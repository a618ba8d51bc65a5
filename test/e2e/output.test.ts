/** What tasks print, as people follow it: live, afterwards, with secrets taken out and hostile bytes made harmless (rows A9, P8, P14). */
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CLI, createRepository, createRig, type Rig } from "../support/bulkhead-cli.ts";
import {
  endRig,
  expectCode,
  hasEvent,
  outputOf,
  readEvents,
  SMALL,
  statusOf,
  waitFor,
  writePlan,
} from "../support/e2e-rig.ts";
import { openTerminal } from "../support/terminal-session.ts";

const SECRET = "sk-test-0123456789abcdef";

let rig: Rig;
let repository: string;

beforeAll(() => {
  rig = createRig();
  repository = createRepository(join(rig.root, "repo"), {
    "bulkhead.yaml": "secrets: [MY_API_KEY]\n",
    "leaked.txt": `${SECRET}\n`,
  });
});
afterAll(() => endRig(rig, /the output of a container is not complete/));

test("--output shows each line behind its task, with secrets redacted there and in the log", async () => {
  const plan = writePlan(rig, {
    defaults: SMALL,
    tasks: [
      { id: "one", run: "echo first; cat leaked.txt; echo to-stderr >&2" },
      { id: "two", run: "printf 'no newline at the end'" },
    ],
  });
  const ran = await rig.run(["run", plan, "--output"], { cwd: repository, env: { MY_API_KEY: SECRET } });
  expectCode(ran, 0);
  expect(ran.stdout).toContain("[one] first\n");
  expect(ran.stdout).toContain("[one] to-stderr\n");
  expect(ran.stdout).toContain("[two] no newline at the end\n");
  expect(ran.stdout).not.toContain(SECRET);
  const log = await outputOf(rig, "one");
  expect(log).not.toContain(SECRET);
  expect(log.split("\n").filter((line) => line !== "")).toHaveLength(3);
  expect(await outputOf(rig, "two")).toBe("no newline at the end");
  expect(JSON.stringify(readEvents(rig))).not.toContain(SECRET);
});

test("logs -f shows lines as they come and ends with the task", async () => {
  const plan = writePlan(rig, {
    defaults: SMALL,
    tasks: [{ id: "slow", run: "echo begun; sleep 3; echo over" }],
  });
  expectCode(await rig.run(["run", "-d", plan], { cwd: repository }), 0);
  const child = spawn(process.execPath, [CLI, "logs", "latest", "slow", "-f"], {
    env: rig.env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  await waitFor("the first line", () => text.includes("begun\n"));
  expect(hasEvent(rig, "attempt-ended", "slow")).toBe(false);
  expect(await ended).toBe(0);
  expect(text).toBe("begun\nover\n");
  // The event log is read only after the run has settled: the supervisor is then free to leave.
  await waitFor("the end of the run", async () => (await statusOf(rig)).state === "succeeded");
});

test("what would steer a terminal is shown harmless on one, and kept as it is when piped", async () => {
  const hostile = "\u001b]0;owned\u0007\u001b[2Jred\u001b[31m";
  const plan = writePlan(rig, {
    defaults: SMALL,
    tasks: [{ id: "hostile", run: `printf '${hostile}\\n'; exit 1` }],
  });
  const terminal = openTerminal(rig, ["run", plan, "--output"], repository);
  expect(await terminal.ended).toBe(1);
  expect(terminal.text).not.toContain("\u001b]0;owned");
  expect(terminal.text).not.toContain("\u001b[2J");
  expect(terminal.text).toMatch(/\[hostile\] .*red/);
  expect(await outputOf(rig, "hostile")).toBe(`${hostile}\n`);
});

test("a flood is cut, and says so; the task and its patch are unharmed", async () => {
  const plan = writePlan(rig, {
    defaults: SMALL,
    tasks: [
      {
        id: "flood",
        run: "head -c 120000000 /dev/zero | tr '\\0' x | fold -w 100; echo the very end; echo ok > ok.txt",
      },
      { id: "quick", run: "echo gone in a moment" },
    ],
  });
  const ran = expectCode(await rig.run(["run", plan, "--json"], { cwd: repository }), 0);
  const [flood] = JSON.parse(ran.stdout).tasks;
  expect(flood).toMatchObject({ id: "flood", state: "succeeded", patch: { files: 1 } });
  const path = join(rig.stateDir, "runs", (await statusOf(rig)).run_id ?? "", "flood", "1", "output.log");
  expect(statSync(path).size).toBeLessThan(100_000_000);
  const log = await outputOf(rig, "flood");
  expect(log.startsWith("xxxx")).toBe(true);
  expect(log).toMatch(/\n[^x\n]+\n/);
  expect(await outputOf(rig, "quick")).toBe("gone in a moment\n");
});
