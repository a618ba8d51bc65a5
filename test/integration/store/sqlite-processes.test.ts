/** The log among several processes: readers beside a writer, writers that race, a writer that is killed, places one may not write to. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runIdSchema } from "../../../src/model/ids.ts";
import { openEventStore } from "../../../src/store/sqlite/sqlite-event-store.ts";

const RUN = runIdSchema.parse("20261130-142501-aaaaaa");
const SCRIPT = fileURLToPath(new URL("store-process.ts", import.meta.url));

let directory: string;
let path: string;
/** Where the other processes keep what is temporary. */
let temporary: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "bulkhead-store-"));
  path = join(directory, "log.db");
  temporary = mkdtempSync(join(tmpdir(), "bulkhead-store-tmp-"));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const made of [directory, temporary]) rmSync(made, { recursive: true, force: true });
});

function start(command: string, args: readonly string[]): ChildProcess {
  const env = { ...process.env, TMPDIR: temporary };
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env });
  children.push(child);
  return child;
}

function startNode(mode: string, ...args: readonly string[]): ChildProcess {
  return start(process.execPath, [SCRIPT, mode, path, ...args]);
}

/** Everything the process answered; fails where it did. */
async function answersOf(child: ChildProcess): Promise<Record<string, unknown>[]> {
  let [out, complaint] = ["", ""];
  child.stdout?.on("data", (bytes) => {
    out += bytes;
  });
  child.stderr?.on("data", (bytes) => {
    complaint += bytes;
  });
  const [exitCode] = await once(child, "close");
  expect(exitCode, complaint).toBe(0);
  return out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** Runs the process in a mount namespace of its own, which goes with it, after `setup` (shell) has changed it. */
function inMountNamespace(setup: string, mode: string): ChildProcess {
  const asRoot = process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"];
  const shell = `set -e; ${setup}; exec "$@"`;
  return start("unshare", [
    ...asRoot,
    "--mount",
    "sh",
    "-c",
    shell,
    directory,
    process.execPath,
    SCRIPT,
    mode,
    path,
  ]);
}

const READ_ONLY_MOUNT = 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"';

test("a reader beside a writer sees a growing, whole beginning of the log, and keeps nobody waiting", async () => {
  const writing = answersOf(startNode("write", "300"));
  const seen: number[] = [];
  await expect
    .poll(
      () => {
        const reader = openEventStore(path, { readOnly: true, readOnlyIfMissing: "empty" });
        const seqs = [...reader.read(RUN)].map(({ seq }) => seq);
        reader.close();
        expect(seqs).toEqual(seqs.map((_, i) => i + 1));
        expect(seqs.length % 3).toBe(0);
        seen.push(seqs.length);
        return seqs.length;
      },
      { interval: 2, timeout: 20_000 },
    )
    .toBe(900);
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(await writing).toHaveLength(300);
});

test("one open reader sees what a writer appends later, by reading on after the last seq", () => {
  const writer = openEventStore(path);
  writer.append(RUN, [{ type: "clock-ticked" }]);
  const reader = openEventStore(path, { readOnly: true });
  expect([...reader.read(RUN)]).toHaveLength(1);
  writer.append(RUN, [{ type: "clock-ticked" }, { type: "clock-ticked" }]);
  expect([...reader.read(RUN, 1)].map(({ seq }) => seq)).toEqual([2, 3]);
  writer.close();
  expect([...reader.read(RUN)]).toHaveLength(3);
  expect(reader.verify()).toMatchObject({ ok: true, rows: 3 });
  expect(() => reader.append(RUN, [{ type: "clock-ticked" }])).toThrow(/opened for reading only/);
  expect(() => reader.appendSoon(RUN, { type: "clock-ticked" })).toThrow(/opened for reading only/);
  reader.close();
});

test("four processes that begin the same log at the same time write one unbroken chain", async () => {
  await Promise.all([1, 2, 3, 4].map(() => answersOf(startNode("write", "50"))));
  const store = openEventStore(path);
  expect(store.verify()).toMatchObject({ ok: true, rows: 600 });
  const messages = [...store.read(RUN)].map(({ event }) =>
    event.type === "warning-raised" ? event.message : "",
  );
  for (let i = 0; i < messages.length; i += 3) {
    const stem = messages[i]?.slice(0, -1);
    expect(messages.slice(i, i + 3)).toEqual([`${stem}a`, `${stem}b`, `${stem}c`]);
  }
  store.close();
});

test("a writer killed in the middle leaves every append it had returned from, whole, and a log that goes on", async () => {
  const child = startNode("write");
  if (!child.stdout) throw new Error("no output");
  let returned = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    returned = JSON.parse(line).appended;
    if (returned >= 40) child.kill("SIGKILL");
  }
  const store = openEventStore(path);
  const rows = [...store.read(RUN)].length;
  expect(rows % 3).toBe(0);
  expect(rows).toBeGreaterThanOrEqual(returned * 3);
  expect(store.append(RUN, [{ type: "clock-ticked" }])[0]?.seq).toBe(rows + 1);
  expect(store.verify()).toMatchObject({ ok: true, rows: rows + 1 });
  store.close();
});

test("where nothing may be written, a closed log is read, and no file appears", async () => {
  await answersOf(startNode("write", "5"));
  expect(readdirSync(directory)).toEqual(["log.db"]);
  expect(await answersOf(inMountNamespace(READ_ONLY_MOUNT, "read"))).toEqual([
    { rows: 15, runs: [RUN], verified: true },
  ]);
  expect(readdirSync(directory)).toEqual(["log.db"]);
});

test("where nothing may be written, the log of a living writer is read with its newest rows", async () => {
  const store = openEventStore(path);
  store.append(RUN, [{ type: "clock-ticked" }, { type: "clock-ticked" }]);
  expect(await answersOf(inMountNamespace(READ_ONLY_MOUNT, "read"))).toEqual([
    { rows: 2, runs: [RUN], verified: true },
  ]);
  store.close();
});

test.each([
  ["with its -shm", (_path: string) => {}],
  ["without its -shm", (shm: string) => rmSync(shm)],
])("where nothing may be written, the log of a killed writer is read whole, %s", async (_name, damage) => {
  const child = startNode("write");
  if (!child.stdout) throw new Error("no output");
  let returned = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    returned = JSON.parse(line).appended;
    if (returned >= 10) child.kill("SIGKILL");
  }
  expect(statSync(`${path}-wal`).size).toBeGreaterThan(0);
  damage(`${path}-shm`);
  const [answer] = await answersOf(inMountNamespace(READ_ONLY_MOUNT, "read"));
  expect(answer).toMatchObject({ runs: [RUN], verified: true });
  expect(Number(answer?.["rows"])).toBeGreaterThanOrEqual(returned * 3);
  expect(readdirSync(temporary)).toEqual([]);
});

test("a full disk: the append is refused and leaves nothing, what waits goes on waiting, and with room it goes on", async () => {
  mkdirSync(join(directory, "tiny"));
  path = join(directory, "tiny", "log.db");
  const [answer] = await answersOf(inMountNamespace('mount -t tmpfs -o size=1m tiny "$0/tiny"', "fill"));
  const appended = Number(answer?.["appended"]);
  expect(appended).toBeGreaterThan(0);
  expect(answer).toMatchObject({
    code: "store-failed",
    flushCode: "store-failed",
    whileFull: appended * 4,
    verified: true,
    after: [expect.stringContaining("told while it was full"), expect.stringContaining('"message":"after"')],
  });
  expect(answer?.["message"]).toContain(path);
  expect(answer?.["hint"]).toMatch(/^Free space/);
});
