import { PassThrough } from "node:stream";
import { afterEach, describe, expect, test, vi } from "vitest";
import { runLiveView } from "../../../src/cli/render/live-view.ts";
import { createPalette } from "../../../src/cli/render/palette.ts";
import type { OutputPiece, ViewItem } from "../../../src/cli/render/view-source.ts";
import {
  ended,
  id,
  log,
  mixedRun,
  OOM,
  START_MS,
  sampleTask,
  started,
  submitted,
} from "../../support/sample-run.ts";

afterEach(() => {
  vi.useRealTimers();
});

const palette = createPalette({ isColored: false, isUnicode: true });

function terminal(size: { columns?: number; rows?: number } = {}) {
  const writes: string[] = [];
  const stdout = Object.assign(new PassThrough(), size);
  stdout.on("data", (piece: Buffer) => writes.push(piece.toString()));
  return { stdout, writes };
}

const output = (taskId: string, text: string, stream: "stdout" | "stderr" = "stdout"): OutputPiece => ({
  type: "output",
  taskId: id(taskId),
  attempt: 1,
  stream,
  text,
});

async function* items(list: readonly ViewItem[]): AsyncGenerator<ViewItem> {
  yield* list;
}

describe("runLiveView without a terminal", () => {
  const show = async (list: readonly ViewItem[], showOutput: boolean): Promise<string> => {
    const { stdout, writes } = terminal();
    await runLiveView(
      { events: items(list) },
      { stdout, palette, mode: "plain", showOutput, nowMs: () => START_MS },
    );
    // The time of day depends on where the test runs.
    return writes.join("").replace(/^\d\d:\d\d:\d\d /gm, "");
  };

  test("prints a line for each change, and nothing else", async () => {
    expect(await show(mixedRun(), false)).toBe(`\
run 20261130-142501-3f9a2c with 5 tasks, 4 at once
▸ auth started
▸ memory started
▸ images started
✓ images succeeded in 4s: no changes
↻ memory out of memory: cap 512 MiB, peak 512 MiB; attempt 2 in 1.5s
▸ memory started, attempt 2
✗ memory failed in 8.4s: out of memory: cap 512 MiB, peak 512 MiB
◌ docs held: memory did not succeed
◌ release held: memory did not succeed
✓ auth succeeded in 1m 12s: 2 files +40 -2, 1 binary
warning: auth: caps: tmp is not enforced
run failed in 1m 12s
`);
  });

  test("output lines stand behind their task; the streams' lines are not mixed; hostile text is cleaned", async () => {
    const [submit, start, end] = log(
      [0, submitted([sampleTask("a")])],
      [1, started("a")],
      [2, ended("a", 1, OOM)],
    );
    if (submit === undefined || start === undefined || end === undefined) throw new Error("three events");
    const list = [
      submit,
      start,
      output("a", "out 1, "),
      output("a", "err\n", "stderr"),
      output("a", "out 2\n\u001b[2J\u001b]0;owned\u0007clean\nno end"),
      end,
    ];
    expect(await show(list, true)).toBe(`\
run 20261130-142501-3f9a2c with 1 task, 4 at once
▸ a started
[a] err
[a] out 1, out 2
[a] clean
[a] no end
`);
    expect(await show(list, false)).not.toContain("[a]");
  });

  test("what is unfinished when the watcher is let go is shown too", async () => {
    expect(await show([output("a", "prompt> ")], true)).toBe("[a] prompt> \n");
  });
});

describe("runLiveView on a terminal", () => {
  test("a flood of output is drawn at most eight times a second, and only lines that changed", async () => {
    const { stdout, writes } = terminal({ columns: 80, rows: 24 });
    const tasks = [sampleTask("loud"), sampleTask("quiet")];
    const began = performance.now();
    let pieces = 0;
    async function* flood(): AsyncGenerator<ViewItem> {
      yield* log([0, submitted(tasks)], [1, started("loud")], [1, started("quiet")]);
      while (performance.now() - began < 600) {
        pieces += 1;
        yield output("loud", `line ${pieces}\n`);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    await runLiveView(
      { events: flood() },
      { stdout, palette, mode: "live", showOutput: false, nowMs: () => START_MS },
    );
    expect(pieces).toBeGreaterThan(100);
    const draws = writes.filter((text) => text.includes("loud"));
    // At 0, 125, 250, 375 and 500 ms.
    expect(draws.length).toBeGreaterThanOrEqual(2);
    expect(draws.length).toBeLessThanOrEqual(6);
    expect(draws.slice(1).some((text) => text.includes("quiet"))).toBe(false);
    // The last thing written takes the view off the screen again.
    expect(writes.at(-1)).toBe("\u001b[3A\r\u001b[J");
  });

  test("nothing is written while nothing changes, and everything again after a resize", async () => {
    vi.useFakeTimers();
    const { stdout, writes } = terminal({ columns: 80, rows: 24 });
    const gate = Promise.withResolvers<void>();
    async function* source(): AsyncGenerator<ViewItem> {
      yield* log([0, submitted([sampleTask("a")])]);
      await gate.promise;
    }
    const shown = runLiveView(
      { events: source() },
      { stdout, palette, mode: "live", showOutput: false, nowMs: () => START_MS },
    );
    await vi.advanceTimersByTimeAsync(10);
    expect(writes).toHaveLength(1);
    // The clock ticks, and finds the same lines.
    await vi.advanceTimersByTimeAsync(5000);
    expect(writes).toHaveLength(1);
    stdout.emit("resize");
    await vi.advanceTimersByTimeAsync(200);
    expect(writes).toHaveLength(2);
    expect(writes[1]).toContain("waiting");
    gate.resolve();
    await shown;
  });

  test("makes way for a question on the same terminal, and goes on below it", async () => {
    vi.useFakeTimers();
    const { stdout, writes } = terminal({ columns: 80, rows: 24 });
    const otherWriter = { isOpen: false, writes: 0 };
    let nowMs = START_MS;
    const gate = Promise.withResolvers<void>();
    async function* source(): AsyncGenerator<ViewItem> {
      yield* log([0, submitted([sampleTask("a")])], [1, started("a")]);
      await gate.promise;
    }
    const shown = runLiveView(
      { events: source() },
      { stdout, palette, mode: "live", showOutput: false, nowMs: () => nowMs, otherWriter },
    );
    await vi.advanceTimersByTimeAsync(10);
    expect(writes).toHaveLength(1);
    otherWriter.isOpen = true;
    otherWriter.writes = 1;
    nowMs += 5000;
    await vi.advanceTimersByTimeAsync(5000);
    expect(writes).toHaveLength(1);
    otherWriter.isOpen = false;
    await vi.advanceTimersByTimeAsync(1100);
    expect(writes).toHaveLength(2);
    expect(writes[1]).toMatch(/^\r20261130/);
    gate.resolve();
    await shown;
    expect(writes.at(-1)).toBe("\u001b[2A\r\u001b[J");
  });

  test("an error of the source leaves a usable terminal", async () => {
    const { stdout, writes } = terminal({ columns: 80, rows: 24 });
    async function* broken(): AsyncGenerator<ViewItem> {
      yield* log([0, submitted([sampleTask("a")])]);
      await expect.poll(() => writes.length).toBe(1);
      throw new Error("connection lost");
    }
    const shown = runLiveView(
      { events: broken() },
      { stdout, palette, mode: "live", showOutput: false, nowMs: () => START_MS },
    );
    await expect(shown).rejects.toThrow("connection lost");
    expect(writes.at(-1)).toBe("\u001b[2A\r\u001b[J");
  });
});
