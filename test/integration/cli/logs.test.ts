import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { registerLogs } from "../../../src/cli/commands/logs.ts";
import { type OutputLog, openOutputLog } from "../../../src/observe/output-log.ts";
import { attemptDir, outputLogPath } from "../../../src/util/state-layout.ts";
import { type CommandRig, createCommandRig, type RunningCommand } from "../../support/command-rig.ts";
import {
  ended,
  id,
  OOM,
  RUN,
  samplePatch,
  sampleTask,
  started,
  submitted,
  succeeded,
} from "../../support/sample-run.ts";

let rig: CommandRig;
beforeEach(() => {
  rig = createCommandRig();
});
afterEach(() => rig.dispose());

function openLog(taskId: string, attempt = 1, maxBytes?: number): Promise<OutputLog> {
  const key = { runId: RUN, taskId, attempt };
  mkdirSync(attemptDir(rig.stateDir, key), { recursive: true });
  return openOutputLog(outputLogPath(rig.stateDir, key), maxBytes === undefined ? {} : { maxBytes });
}

async function writeLog(taskId: string, text: string, attempt = 1): Promise<void> {
  const log = await openLog(taskId, attempt);
  await log.write("stdout", Buffer.from(text));
  await log.close();
}

/** Waits until the command has printed this. */
async function printed(command: RunningCommand, text: string): Promise<void> {
  let seen = "";
  while (!seen.includes(text)) {
    const [piece] = (await once(command.stdout, "data")) as [Buffer];
    seen += piece.toString();
  }
}

describe("bulkhead logs", () => {
  test("piped, one task's log is what was written, byte for byte", async () => {
    rig.record(submitted([sampleTask("a")]), started("a"));
    await writeLog("a", "red \u001b[31mtext\u001b[0m\r\nno end");
    expect((await rig.run(registerLogs, ["logs", "latest", "a"])).stdout).toBe(
      "red \u001b[31mtext\u001b[0m\r\nno end",
    );
  });

  test("on a terminal nothing in it can steer the terminal", async () => {
    rig.record(submitted([sampleTask("a")]), started("a"));
    await writeLog("a", "\u001b]0;owned\u0007ok\u001b[2J\nuser\u202eexe\nno end");
    const { stdout } = await rig.run(registerLogs, ["logs", "latest", "a"], { isTty: true });
    expect(stdout).toBe("ok\nuserexe\nno end\n");
  });

  test("all tasks: each line behind its task", async () => {
    rig.record(
      submitted([sampleTask("a"), sampleTask("docs"), sampleTask("later")]),
      started("a"),
      started("docs"),
    );
    await writeLog("a", "one\ntwo\n");
    await writeLog("docs", "three");
    expect((await rig.run(registerLogs, ["logs"])).stdout).toBe("[a]     one\n[a]     two\n[docs]  three\n");
  });

  test("the newest attempt, or the one that is asked for", async () => {
    rig.record(submitted([sampleTask("a")]), started("a"), ended("a", 1, OOM), started("a", 2));
    await writeLog("a", "first\n", 1);
    await writeLog("a", "second\n", 2);
    expect((await rig.run(registerLogs, ["logs", RUN, "a"])).stdout).toBe("second\n");
    expect((await rig.run(registerLogs, ["logs", "3f9a2c", "a", "--attempt", "1"])).stdout).toBe("first\n");
    const { error } = await rig.run(registerLogs, ["logs", RUN, "a", "--attempt", "3"]);
    expect(error).toMatchObject({ code: "usage", message: "a has 2 attempts, not 3" });
  });

  test("a task that never ran says why it has no log; unknown names are helped with", async () => {
    rig.record(
      submitted([sampleTask("auth_refactor"), sampleTask("b", { dependsOn: [id("auth_refactor")] })]),
      { type: "task-held", taskId: id("b"), because: id("auth_refactor") },
    );
    const held = await rig.run(registerLogs, ["logs", "latest", "b"]);
    expect(held.error?.message).toBe(
      "b has not started (held, because auth_refactor did not succeed): it has no log",
    );
    const misspelt = await rig.run(registerLogs, ["logs", "latest", "auth-refactr"]);
    expect(misspelt.error).toMatchObject({ code: "task-not-found", hint: "did you mean auth_refactor?" });
    expect((await rig.run(registerLogs, ["logs", "2027"])).error).toMatchObject({ code: "run-not-found" });
  });

  test("-f goes on through a retry until the task has ended, and misses nothing", async () => {
    rig.record(submitted([sampleTask("a")]));
    const command = rig.start(registerLogs, ["logs", "latest", "a", "-f"]);
    rig.record(started("a"));
    const first = await openLog("a", 1);
    await first.write("stdout", Buffer.from("one\n"));
    await printed(command, "one\n");
    await first.write("stderr", Buffer.from("two\n"));
    await printed(command, "two\n");
    await first.close();
    rig.record(ended("a", 1, OOM), started("a", 2));
    const second = await openLog("a", 2, 4096);
    await second.write("stdout", Buffer.from(`${"x".repeat(3000)}\nlast`));
    await second.close();
    const patch = samplePatch("a", []);
    rig.record(ended("a", 2, patch), succeeded("a", patch, 2));
    const { stdout, error } = await command.done;
    expect(error).toBeNull();
    expect(stdout).toBe(`one\ntwo\n${"x".repeat(3000)}\nlast`);
  });

  test("-f of a whole run takes up tasks as they start and ends with the run", async () => {
    rig.record(submitted([sampleTask("a"), sampleTask("b")]), started("a"));
    const log = await openLog("a");
    const command = rig.start(registerLogs, ["logs", "-f"]);
    await log.write("stdout", Buffer.from("from a\n"));
    await printed(command, "[a] from a\n");
    await log.close();
    rig.record(started("b"));
    await writeLog("b", "from b\n");
    rig.record({
      type: "run-finished",
      outcome: { status: "succeeded", succeeded: 2, failed: 0, cancelled: 0, held: 0 },
    });
    expect((await command.done).stdout).toBe("[a] from a\n[b] from b\n");
  });

  test("a reader that goes away ends it without an error", async () => {
    rig.record(submitted([sampleTask("a")]), started("a"));
    await writeLog("a", "line\n".repeat(500_000));
    const command = rig.start(registerLogs, ["logs", "latest", "a"]);
    await once(command.stdout, "data");
    command.stdout.destroy();
    expect((await command.done).error).toBeNull();
  });
});
