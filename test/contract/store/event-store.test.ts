/** What every event store promises. Another implementation joins by a row in `implementations`. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LoggedEvent, RunEvent } from "../../../src/model/event.ts";
import { runIdSchema, taskIdSchema } from "../../../src/model/ids.ts";
import { openEventStore } from "../../../src/store/sqlite/sqlite-event-store.ts";
import type { EventStore } from "../../../src/store/store.ts";

interface Implementation {
  readonly name: string;
  /** Opens the store kept in `directory`, making it where it is missing. May be open several times at once. */
  open(directory: string, nowMs: () => number): EventStore;
}

const implementations: Implementation[] = [
  { name: "sqlite", open: (directory, nowMs) => openEventStore(join(directory, "log.db"), { nowMs }) },
];

const RUN_A = runIdSchema.parse("20261130-142501-aaaaaa");
const RUN_B = runIdSchema.parse("20261130-142502-bbbbbb");
const RUN_OLD_NAME = runIdSchema.parse("20200101-000000-cccccc");

const warning = (message: string): RunEvent => ({ type: "warning-raised", taskId: null, message });

function messages(events: Iterable<LoggedEvent>): string[] {
  return Array.from(events, ({ event }) => (event.type === "warning-raised" ? event.message : event.type));
}

describe.each(implementations)("event store: $name", ({ open }) => {
  let directory: string;
  let store: EventStore;
  let nowMs = 0;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "bulkhead-store-"));
    nowMs = 1_700_000_000_000;
    store = open(directory, () => nowMs);
  });
  afterEach(() => {
    store.close();
    rmSync(directory, { recursive: true, force: true });
  });

  test("a new one is empty, and whole", () => {
    expect(store.runs()).toEqual([]);
    expect([...store.read(RUN_A)]).toEqual([]);
    expect(store.verify()).toMatchObject({ ok: true, rows: 0 });
  });

  test("append answers with the events as they are logged: numbered from 1 over all runs, with the time", () => {
    expect(store.append(RUN_A, [warning("one"), warning("two")])).toEqual([
      { seq: 1, runId: RUN_A, atMs: nowMs, event: warning("one") },
      { seq: 2, runId: RUN_A, atMs: nowMs, event: warning("two") },
    ]);
    nowMs += 5;
    expect(store.append(RUN_B, [warning("three")])).toEqual([
      { seq: 3, runId: RUN_B, atMs: nowMs, event: warning("three") },
    ]);
    expect(store.append(RUN_B, [])).toEqual([]);
    expect(store.verify()).toMatchObject({ ok: true, rows: 3 });
  });

  test("reads the events of one run, after a seq, in order", () => {
    store.append(RUN_A, [warning("a1"), warning("a2")]);
    store.append(RUN_B, [warning("b1")]);
    store.append(RUN_A, [warning("a3")]);
    expect(messages(store.read(RUN_A))).toEqual(["a1", "a2", "a3"]);
    expect([...store.read(RUN_A, 2)].map(({ seq }) => seq)).toEqual([4]);
    expect(messages(store.read(RUN_A, 4))).toEqual([]);
    expect(messages(store.read(RUN_B))).toEqual(["b1"]);
  });

  test("lists runs with the one that began last first, whatever their names", () => {
    for (const run of [RUN_A, RUN_B, RUN_OLD_NAME, RUN_A]) store.append(run, [warning("x")]);
    expect(store.runs()).toEqual([RUN_OLD_NAME, RUN_B, RUN_A]);
  });

  test("what was appended is there after closing and opening again, and the numbers go on", () => {
    store.append(RUN_A, [warning("before")]);
    const { head } = { head: "", ...store.verify() };
    store.close();
    store = open(directory, () => nowMs);
    expect(store.verify()).toEqual({ ok: true, rows: 1, head });
    expect(store.append(RUN_A, [warning("after")])[0]?.seq).toBe(2);
    expect(messages(store.read(RUN_A))).toEqual(["before", "after"]);
  });

  test("the head names the content: other events, other head", () => {
    const heads = new Set<unknown>();
    for (const message of ["x", "y", "x"]) {
      store.append(RUN_A, [warning(message)]);
      const result = store.verify();
      heads.add(result.ok && result.head);
    }
    expect(heads.size).toBe(3);
  });

  test("any text survives: control characters, quotes, halves of surrogates, megabytes", () => {
    const texts = ["", "\0 \n \u2028 ' \" \\", "\ud800 alone", "🧱".repeat(10), "x".repeat(3_000_000)];
    store.append(RUN_A, texts.map(warning));
    expect(messages(store.read(RUN_A))).toEqual(texts);
    expect(store.verify()).toMatchObject({ ok: true, rows: texts.length });
  });

  test("an event may hold names that JavaScript treats specially", () => {
    const event: RunEvent = {
      type: "task-cancelled",
      taskId: taskIdSchema.parse("constructor"),
      ...JSON.parse('{"__proto__": {"polluted": true}}'),
    };
    store.append(RUN_A, [event]);
    const [logged] = [...store.read(RUN_A)];
    expect(logged?.event).toMatchObject({ taskId: "constructor" });
    expect("polluted" in {}).toBe(false);
  });

  describe("reading", () => {
    test("goes over far more events than a page, and sees those that were there when it began", () => {
      const count = 2000;
      store.append(RUN_B, [warning("other")]);
      store.append(
        RUN_A,
        Array.from({ length: count }, (_, i) => warning(`${i}`)),
      );
      const seen: string[] = [];
      for (const { event } of store.read(RUN_A)) {
        if (event.type === "warning-raised") seen.push(event.message);
        if (seen.length % 500 === 1) store.append(RUN_A, [warning("late")]);
      }
      expect(seen).toEqual(Array.from({ length: count }, (_, i) => `${i}`));
    });

    test("two at once, and one given up half way, do not disturb each other", () => {
      store.append(
        RUN_A,
        Array.from({ length: 600 }, (_, i) => warning(`${i}`)),
      );
      const [one, two] = [store.read(RUN_A), store.read(RUN_A)];
      for (const logged of one) if (logged.seq === 300) break;
      expect([...two]).toHaveLength(600);
      expect(store.append(RUN_A, [warning("x")])[0]?.seq).toBe(601);
    });
  });

  describe("appendSoon", () => {
    test("is written within moments, by itself", async () => {
      const heard = new Promise<LoggedEvent>((resolve) => store.subscribe(resolve));
      store.appendSoon(RUN_A, warning("soon"));
      expect(await heard).toMatchObject({ seq: 1, event: warning("soon") });
    });

    test("keeps the order with append, and the time it was told", () => {
      store.appendSoon(RUN_A, warning("1"));
      nowMs += 3;
      store.appendSoon(RUN_B, warning("2"));
      expect(store.append(RUN_A, [warning("3")])).toMatchObject([{ seq: 3, event: warning("3") }]);
      expect([...store.read(RUN_A)]).toMatchObject([{ seq: 1, atMs: nowMs - 3 }, { seq: 3 }]);
      expect(messages(store.read(RUN_B))).toEqual(["2"]);
    });

    test.each([
      ["flush", (one: EventStore) => one.flush()],
      ["close", (one: EventStore) => one.close()],
    ])("%s forces it out", (_name, force) => {
      store.appendSoon(RUN_A, warning("held"));
      force(store);
      const other = open(directory, () => nowMs);
      expect(messages(other.read(RUN_A))).toEqual(["held"]);
      other.close();
    });

    test("reading in the same store sees what waits", () => {
      store.appendSoon(RUN_A, warning("held"));
      expect(store.runs()).toEqual([RUN_A]);
      store.appendSoon(RUN_A, warning("held too"));
      expect(messages(store.read(RUN_A))).toEqual(["held", "held too"]);
    });

    test("thousands in one go are all written, in order", () => {
      for (let i = 0; i < 3000; i += 1) store.appendSoon(RUN_A, warning(`${i}`));
      expect(messages(store.read(RUN_A))).toEqual(Array.from({ length: 3000 }, (_, i) => `${i}`));
    });
  });

  describe("subscribe", () => {
    test("hears each committed event in order until it leaves", () => {
      const heard: number[] = [];
      const leave = store.subscribe(({ seq }) => heard.push(seq));
      store.appendSoon(RUN_A, warning("1"));
      expect(heard).toEqual([]);
      store.append(RUN_B, [warning("2"), warning("3")]);
      leave();
      leave();
      store.append(RUN_A, [warning("4")]);
      expect(heard).toEqual([1, 2, 3]);
    });

    test("two subscribers hear the same order, even when one appends because of what it heard", () => {
      const [first, second]: [number[], number[]] = [[], []];
      store.subscribe(({ seq }) => {
        first.push(seq);
        if (seq <= 2) store.append(RUN_A, [warning("answer")]);
      });
      store.subscribe(({ seq }) => second.push(seq));
      store.append(RUN_A, [warning("1"), warning("2")]);
      expect(first).toEqual([1, 2, 3, 4]);
      expect(second).toEqual([1, 2, 3, 4]);
    });

    test("what a listener throws fails neither the append nor the other listeners, and surfaces as uncaught", async () => {
      const others = process.listeners("uncaughtException");
      process.removeAllListeners("uncaughtException");
      try {
        const surfaced = new Promise((resolve) => process.once("uncaughtException", resolve));
        const heard: number[] = [];
        store.subscribe(() => {
          throw new Error("a bug of the listener");
        });
        store.subscribe(({ seq }) => heard.push(seq));
        expect(store.append(RUN_A, [warning("1")])).toHaveLength(1);
        expect(heard).toEqual([1]);
        expect(await surfaced).toMatchObject({ message: "a bug of the listener" });
      } finally {
        for (const other of others) process.on("uncaughtException", other);
      }
    });

    test("an event is on disk before it is told", () => {
      const other = open(directory, () => nowMs);
      const seen: string[][] = [];
      store.subscribe(() => seen.push(messages(other.read(RUN_A))));
      store.append(RUN_A, [warning("1")]);
      other.close();
      expect(seen).toEqual([["1"]]);
    });
  });

  test("two stores on one log append in turns into one unbroken order", () => {
    const other = open(directory, () => nowMs);
    for (let i = 0; i < 20; i += 1) {
      expect((i % 2 ? store : other).append(RUN_A, [warning(`${i}`)])[0]?.seq).toBe(i + 1);
    }
    expect(messages(other.read(RUN_A))).toEqual(Array.from({ length: 20 }, (_, i) => `${i}`));
    expect(other.verify()).toMatchObject({ ok: true, rows: 20 });
    other.close();
  });

  test("after close, twice for good measure, everything else is refused", () => {
    store.close();
    store.close();
    const uses = [
      () => store.append(RUN_A, [warning("x")]),
      () => store.appendSoon(RUN_A, warning("x")),
      () => [...store.read(RUN_A)],
      () => store.runs(),
      () => store.verify(),
      () => store.flush(),
    ];
    for (const use of uses) expect(use).toThrow(expect.objectContaining({ code: "internal" }));
  });
});
