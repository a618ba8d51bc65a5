/**
 * A process that uses an event log, for tests that need another one: `node store-process.ts <mode> <path> [count]`.
 * Answers on standard output, a line of JSON each.
 */
import { rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { RunEvent } from "../../../src/model/event.ts";
import { runIdSchema } from "../../../src/model/ids.ts";
import { RunnerError } from "../../../src/model/runner-error.ts";
import { openEventStore } from "../../../src/store/sqlite/sqlite-event-store.ts";

const RUN = runIdSchema.parse("20261130-142501-aaaaaa");

const modes: Record<string, (path: string, count: number) => void> = {
  /** Appends three events at a time, says so after each, and never ends by itself before `count`. */
  write(path, count) {
    const store = openEventStore(path);
    for (let i = 0; i < count; i += 1) {
      store.append(
        RUN,
        ["a", "b", "c"].map((part) => warning(`${process.pid}/${i}${part}`)),
      );
      say({ appended: i + 1 });
    }
    store.close();
  },
  read(path) {
    const store = openEventStore(path, { readOnly: true });
    const rows = [...store.read(RUN)].length;
    say({ rows, runs: store.runs(), verified: store.verify().ok });
    store.close();
  },
  /** On a tiny file system: appends until it is full, makes room, goes on. */
  fill(path, count) {
    const ballast = join(dirname(path), "ballast");
    writeFileSync(ballast, Buffer.alloc(256 * 1024));
    const store = openEventStore(path);
    const batch = ["a", "b", "c", "d"].map((part) => warning(part.repeat(20_000)));
    let appended = 0;
    let error: RunnerError | null = null;
    while (!error && appended < count) {
      error = failureOf(() => store.append(RUN, batch));
      if (!error) appended += 1;
    }
    store.appendSoon(RUN, warning("told while it was full ".repeat(5000)));
    const flush = failureOf(() => store.flush());
    const whileFull = countRows(path);
    rmSync(ballast);
    store.append(RUN, [warning("after")]);
    say({
      appended,
      code: error?.code,
      message: error?.message,
      hint: error?.hint,
      flushCode: flush?.code,
      whileFull,
      after: [...store.read(RUN)]
        .slice(appended * batch.length)
        .map(({ event }) => JSON.stringify(event).slice(0, 80)),
      verified: store.verify().ok,
    });
    store.close();
  },
};

function warning(message: string): RunEvent {
  return { type: "warning-raised", taskId: null, message };
}

/** Rows that another connection sees. */
function countRows(path: string): number {
  const reader = openEventStore(path, { readOnly: true });
  const rows = [...reader.read(RUN)].length;
  reader.close();
  return rows;
}

function failureOf(step: () => void): RunnerError | null {
  try {
    step();
    return null;
  } catch (error) {
    if (error instanceof RunnerError) return error;
    throw error;
  }
}

function say(answer: object): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

const [mode = "", path = "", count = "1000000"] = process.argv.slice(2);
modes[mode]?.(path, Number(count));
