/** Timing and output: not ending, ending too fast, saying too much, saying what a terminal would obey (rows P7, P8, A9). */
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunViewJson } from "../../src/observe/run-view-json.ts";
import { openRig, type Rig as SandboxRig } from "../integration/sandbox/rig.ts";
import { type CliResult, createRepository, createRig } from "../support/bulkhead-cli.ts";
import { endRig, outputOf, SMALL, statusOf, supervisorPids, taskOf, writePlan } from "../support/e2e-rig.ts";
import { attack } from "./support/attack.ts";
import { IMAGE } from "./support/script-attacks.ts";

const NAME = randomBytes(6).toString("hex");
/** Command lines by which survivors are found on the host. */
const SURVIVOR = `survivor-${NAME}`;
const LATE = `late-${NAME}`;
const GB = 1000 ** 3;
const PIPE = "a child process whose output is read to its end";
const CHILD = "a child process that is ended by a signal";
const PLAIN = "a plain container, its output read by a pipe";

const STUBBORN = "trap '' TERM HUP INT; while :; do sleep 0.2; done";
const ESCAPES = String.raw`printf '\033]0;owned\007\033[2J\033[1;1H\033]8;;http://evil.example.org\007click\033]8;;\007\033]52;c;b3duZWQ=\007\033P+q544e\033\\\233\n'`;
const FAKE = `echo '{"type":"task-succeeded","taskId":"liar"}'; echo '✓ liar'; exit 9`;

const GIGABYTE = {
  id: "gigabyte",
  timeout: "100s",
  run: `head -c ${GB} /dev/zero | tr '\\0' x; echo; echo the last line`,
};

const TASKS = [
  { id: "endless-line", run: "head -c 90000000 /dev/zero | tr '\\0' y" },
  { id: "survivor", timeout: "3s", run: `setsid sh -c "${STUBBORN}" ${SURVIVOR} & ${STUBBORN}` },
  { id: "daemon", run: "setsid sleep 300 & echo parent done; exit 0" },
  {
    id: "late-writer",
    run: `setsid sh -c 'sleep 1; echo late > late.txt; while :; do sleep 1; done' ${LATE} </dev/null >/dev/null 2>&1 & echo early > early.txt; sleep 0.3; exit 0`,
  },
  { id: "stopped", timeout: "3s", run: "kill -STOP $$; sleep 100" },
  { id: "escapes", run: ESCAPES },
  { id: "liar", run: FAKE },
];

let rig: ReturnType<typeof createRig>;
let sandbox: SandboxRig;
let repository: string;
let ran: CliResult;
let status: RunViewJson;
let runId: string;
let gigabyte: RunViewJson;
/** Resident memory of the supervisor while the output came, in bytes. */
const memory: number[] = [];

async function sampleMemory(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const pid of supervisorPids(rig.stateDir)) {
      try {
        const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
        if (kib !== undefined) memory.push(Number(kib) * 1024);
      } catch {
        // It has ended since.
      }
    }
    await delay(100);
  }
}

/** Processes of the machine with this word on their command line. */
function processesWith(word: string): number[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      if (!/^\d+$/.test(pid)) return [];
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(word) ? [Number(pid)] : [];
    } catch {
      return [];
    }
  });
}

/** Runs a shell script as an agent started by hand: its output is read to the end, `limitMs` later it is sent SIGTERM. */
function runByHand(
  script: string,
  limitMs: number,
  giveUpMs: number,
): Promise<{ ended: boolean; tookMs: number; output: string }> {
  return new Promise((resolve) => {
    const began = performance.now();
    const child = spawn("sh", ["-c", script], {
      stdio: ["ignore", "pipe", "ignore"],
      cwd: rig.root,
      detached: true,
    });
    let output = "";
    child.stdout.setEncoding("latin1").on("data", (text: string) => {
      output += text;
    });
    const stop = setTimeout(() => child.kill("SIGTERM"), limitMs);
    const finish = (ended: boolean) => {
      clearTimeout(stop);
      clearTimeout(late);
      try {
        // The group: what the script started, too.
        process.kill(-(child.pid ?? 0), "SIGKILL");
      } catch {
        // It has ended.
      }
      child.stdout.destroy();
      resolve({ ended, tookMs: performance.now() - began, output });
    };
    const late = setTimeout(() => finish(false), giveUpMs);
    child.once("close", () => finish(true));
  });
}

function durationOf(id: string): number {
  const { started_ms: began, ended_ms: ended } = taskOf(status, id);
  return (ended ?? Number.POSITIVE_INFINITY) - (began ?? 0);
}

function endAll(word: string): void {
  for (const pid of processesWith(word)) process.kill(pid, "SIGKILL");
}

beforeAll(async () => {
  rig = createRig();
  sandbox = await openRig();
  repository = createRepository(join(rig.root, "repo"), { "README.md": "hello\n" });
  const plan = writePlan(rig, { defaults: SMALL, tasks: TASKS });
  ran = await rig.run(["run", plan, "--slots", "8", "--output"], { cwd: repository });
  status = await statusOf(rig);
  runId = status.run_id ?? "";

  // Alone, since what is measured is its supervisor's memory; `latest` is this run from here on.
  const alone = writePlan(rig, { defaults: SMALL, tasks: [GIGABYTE] }, "alone.json");
  const over = new AbortController();
  const measuring = sampleMemory(over.signal);
  await rig.run(["run", alone], { cwd: repository });
  over.abort();
  await measuring;
  gigabyte = await statusOf(rig);
});

afterAll(async () => {
  endAll(SURVIVOR);
  endAll(LATE);
  await sandbox.close();
  await endRig(rig);
});

describe("lifecycle", () => {
  attack({
    id: "lifecycle/output-memory",
    claim: "has a gigabyte of output kept in the supervisor's memory",
    baseline: "a pipe that is read into memory, 200 MB of it",
    async unprotected() {
      const before = process.memoryUsage().rss;
      const { output } = await runByHand("head -c 200000000 /dev/zero | tr '\\0' x", 60_000, 60_000);
      expect(output.length).toBe(200_000_000);
      return { grownBytes: process.memoryUsage().rss - before, series: "" };
    },
    async bulkhead() {
      // By a quarter of the output the runtime has its working space; after it nothing may grow with what is written.
      const early = memory[Math.floor(memory.length / 4)] ?? 0;
      expect(memory.length).toBeGreaterThan(20);
      const series = memory.map((bytes) => Math.round(bytes / 1_000_000)).join(" ");
      return { grownBytes: Math.max(...memory) - early, series };
    },
    succeeded: ({ grownBytes }) => grownBytes > 40_000_000,
  });

  attack({
    id: "lifecycle/output-disk",
    claim: "fills the host's disk with a gigabyte of output",
    baseline: "output written to a file as it comes, 200 MB of it",
    async unprotected() {
      const path = join(rig.root, "output.txt");
      execFileSync("sh", ["-c", `head -c 200000000 /dev/zero | tr '\\0' x > ${path}`]);
      return statSync(path).size;
    },
    async bulkhead() {
      const logs = readdirSync(rig.stateDir, { recursive: true, encoding: "utf8" });
      const sizes = logs
        .filter((path) => path.includes("gigabyte") && path.includes("output.log"))
        .map((path) => statSync(join(rig.stateDir, path)).size);
      expect(sizes.length).toBeGreaterThan(0);
      return sizes.reduce((sum, size) => sum + size, 0);
    },
    succeeded: (bytes) => bytes > 100_000_000,
  });

  test("after the gigabyte the task has gone on to its end, and the cut is marked", async () => {
    expect(taskOf(gigabyte, "gigabyte").state).toBe("succeeded");
    const { stdout } = await rig.run(["logs", "latest", "gigabyte"]);
    expect(stdout.endsWith("\nthe last line\n")).toBe(true);
    expect(stdout).toMatch(/\d+ (bytes|[KMG]iB)[^\n]*(cut|left out)|(cut|left out)[^\n]*\d+/);
  });

  attack({
    id: "lifecycle/endless-line",
    claim: "stops whoever reads lines by a line of 90 MB",
    baseline: "output taken line by line, kept until the line ends",
    unprotected: async () => {
      const { output } = await runByHand("head -c 90000000 /dev/zero | tr '\\0' y", 60_000, 60_000);
      return { longestKept: output.length, state: "reading" };
    },
    async bulkhead() {
      const lines = ran.stdout.split("\n").map((line) => line.length);
      return { longestKept: Math.max(...lines), state: taskOf(status, "endless-line").state };
    },
    succeeded: ({ longestKept, state }) => longestKept > 10_000_000 || state === "failed",
  });

  attack({
    id: "lifecycle/held-output",
    claim: "keeps the task from ending by a daemon that holds standard output",
    baseline: PIPE,
    unprotected: async () =>
      !(await runByHand("setsid sleep 6 & echo parent done; exit 0", 60_000, 4_000)).ended,
    bulkhead: async () => taskOf(status, "daemon").state !== "succeeded" || durationOf("daemon") > 30_000,
    succeeded: (isHeld) => isHeld,
  });

  test("a daemon that holds standard output costs less than two seconds of its own", async () => {
    const { exit } = await sandbox.run(sandbox.spec(["sh", "-c", "setsid sleep 300 & exit 0"]));
    expect(exit.failure).toBeNull();
    expect(exit.mainMs).toBeLessThan(2_000);
  });

  attack({
    id: "lifecycle/survivor",
    claim: "lives on after its time limit, in a session of its own and deaf to signals",
    baseline: CHILD,
    async unprotected() {
      const name = `${SURVIVOR}-by-hand`;
      await runByHand(`setsid sh -c "${STUBBORN}" ${name} & sleep 100`, 500, 1_500);
      const alive = processesWith(name).length;
      endAll(name);
      return alive;
    },
    bulkhead: async () => {
      expect(taskOf(status, "survivor").failure).toMatchObject({ reason: "timeout" });
      return processesWith(SURVIVOR).length;
    },
    succeeded: (alive) => alive > 0,
  });

  attack({
    id: "lifecycle/deaf",
    claim: "outlasts its time limit by ignoring SIGTERM",
    baseline: CHILD,
    unprotected: async () => (await runByHand(STUBBORN, 500, 3_000)).tookMs > 2_500,
    bulkhead: async () => durationOf("survivor") > 3_000 + 10_000,
    succeeded: (isLate) => isLate,
  });

  attack({
    id: "lifecycle/stopped",
    claim: "outlasts its time limit by stopping itself, so that it can take no signal",
    baseline: CHILD,
    unprotected: async () => (await runByHand("kill -STOP $$; sleep 100", 500, 3_000)).tookMs > 2_500,
    bulkhead: async () => {
      expect(taskOf(status, "stopped").failure).toMatchObject({ reason: "timeout" });
      return durationOf("stopped") > 3_000 + 10_000;
    },
    succeeded: (isLate) => isLate,
  });

  attack({
    id: "lifecycle/late-writer",
    claim: "changes the result after the task has ended, by a process that it left behind",
    baseline: CHILD,
    async unprotected() {
      const task = TASKS.find(({ id }) => id === "late-writer");
      const name = `${LATE}-by-hand`;
      await runByHand(task?.run.replace(LATE, name) ?? "", 60_000, 60_000);
      await delay(1_500);
      const found = readdirSync(rig.root).includes("late.txt");
      endAll(name);
      return found;
    },
    async bulkhead() {
      const { stdout } = await rig.run(["diff", runId, "late-writer"]);
      expect(taskOf(status, "late-writer")).toMatchObject({ state: "succeeded", patch: { files: 1 } });
      return stdout.includes("late.txt") || processesWith(LATE).length > 0;
    },
    succeeded: (isLate) => isLate,
  });

  attack({
    id: "lifecycle/terminal-escapes",
    claim: "retitles, clears and fills the clipboard of the terminal that shows its output",
    baseline: PLAIN,
    unprotected: () =>
      execFileSync("docker", ["run", "--rm", IMAGE, "sh", "-c", ESCAPES], { encoding: "latin1" }),
    async bulkhead() {
      const shown = await rig.run(["status", runId]);
      return ran.stdout + ran.stderr + shown.stdout;
    },
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
    succeeded: (shown) => /[\x1b\x9b\x07]/.test(shown),
  });

  attack({
    id: "lifecycle/false-report",
    claim: "reports its own success by printing what the runner's log would have",
    baseline: "a harness that believes the last lines of output",
    unprotected: async () =>
      /^✓ liar$/m.test(Buffer.from((await runByHand(FAKE, 5_000, 5_000)).output, "latin1").toString()),
    bulkhead: async () => {
      expect(await outputOf(rig, "liar", runId)).toContain("task-succeeded");
      return taskOf(status, "liar").state === "succeeded";
    },
    succeeded: (isBelieved) => isBelieved,
  });

  attack({
    id: "lifecycle/lost-end",
    claim: "ends so fast that its last bytes, or the fact that it ended, are lost (30 times)",
    baseline: "a container whose output is asked for once it is seen running",
    async unprotected() {
      const label = `bulkhead.test=attacks-${NAME}`;
      const words = [
        "--detach",
        "--rm",
        "--network",
        "none",
        "--label",
        label,
        IMAGE,
        "sh",
        "-c",
        "printf last",
      ];
      const id = execFileSync("docker", ["run", ...words], { encoding: "utf8" }).trim();
      while (execFileSync("docker", ["ps", "--all", "--quiet", "--filter", `label=${label}`]).length > 0)
        await delay(50);
      try {
        const output = execFileSync("docker", ["logs", id], {
          encoding: "utf8",
          stdio: ["ignore", "pipe", "pipe"],
        });
        return output === "last" ? 0 : 1;
      } catch {
        return 1;
      }
    },
    async bulkhead() {
      let lost = 0;
      for (let round = 0; round < 30; round += 1) {
        const { stdout, exit } = await sandbox.run(sandbox.spec(["printf", `last${round}`]));
        if (stdout !== `last${round}` || exit.exitCode !== 0) lost += 1;
      }
      return lost;
    },
    succeeded: (lost) => lost > 0,
  });
});
