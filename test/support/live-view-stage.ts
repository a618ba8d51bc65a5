/**
 * Plays a run to the live view on this process's terminal, in stages: after each the view has drawn, and a mark names the stage in
 * the byte stream. Started by the live view's test under a pseudo terminal.
 */

import { runLiveView } from "../../src/cli/render/live-view.ts";
import { choosePalette } from "../../src/cli/render/palette.ts";
import { renderReport } from "../../src/cli/render/report.ts";
import type { ViewItem } from "../../src/cli/render/view-source.ts";
import type { LoggedEvent } from "../../src/model/event.ts";
import { id, mixedRun, START_MS } from "./sample-run.ts";

let nowMs = START_MS;
let drawn = Promise.withResolvers<void>();
const stdout = Object.create(process.stdout, {
  write: {
    value: (text: string) => {
      process.stdout.write(text, () => drawn.resolve());
      return true;
    },
  },
}) as typeof process.stdout;

const events = mixedRun();
const upTo = (fromMs: number, toMs: number): LoggedEvent[] =>
  events.filter(({ atMs }) => atMs > START_MS + fromMs && atMs <= START_MS + toMs);

async function* play(): AsyncGenerator<ViewItem> {
  async function* stage(name: string, atMs: number, items: readonly ViewItem[]): AsyncGenerator<ViewItem> {
    nowMs = START_MS + atMs;
    drawn = Promise.withResolvers();
    yield* items;
    await drawn.promise;
    process.stdout.write(`\u001b]9999;${name}\u0007`);
  }
  yield* stage("started", 2_000, upTo(-1, 300));
  const auth = { taskId: id("auth") } as const;
  yield* stage("output", 3_000, [
    { type: "sample", ...auth, cpuMs: 1000, memoryBytes: 100 * 1024 ** 2, pids: 3, atMs: START_MS + 1000 },
    { type: "sample", ...auth, cpuMs: 1900, memoryBytes: 320 * 1024 ** 2, pids: 3, atMs: START_MS + 2000 },
    {
      type: "output",
      ...auth,
      attempt: 1,
      stream: "stdout",
      text: "\u001b[2J\u001b]0;owned\u0007編集中 src/auth.ts\n",
    },
  ]);
  yield* stage("failed", 9_000, upTo(300, 8_500));
  yield* stage("warned", 72_450, upTo(8_500, 72_450));
  yield* upTo(72_450, 99_999);
}

const palette = choosePalette(process.env, true);
const view = await runLiveView(
  { events: play() },
  { stdout, palette, mode: "live", showOutput: false, nowMs: () => nowMs },
);
process.stdout.write("\u001b]9999;cleared\u0007");
process.stdout.write(renderReport(view, { palette, stateDir: "/state", nowMs }));
