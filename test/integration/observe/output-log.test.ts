import { mkdtemp, readdir, readFile, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { listTailSegments } from "../../../src/observe/bounded-file.ts";
import { openOutputLog } from "../../../src/observe/output-log.ts";
import { createOutputReader, type OutputReader } from "../../../src/observe/read-output-log.ts";

let dir = "";
let path = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "bulkhead-output-"));
  path = join(dir, "output.log");
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function readAll(reader: OutputReader): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of reader.readNew()) pieces.push(piece);
  return Buffer.concat(pieces).toString("latin1");
}

/** `count` numbered lines of exactly 16 bytes. */
function lines(from: number, count: number): Buffer {
  return Buffer.from(
    Array.from({ length: count }, (_, i) => `line ${String(from + i).padStart(10, "0")}\n`).join(""),
  );
}

describe("openOutputLog", () => {
  test("keeps every byte of a small output, private to the user", async () => {
    const log = await openOutputLog(path);
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    await log.write("stdout", bytes);
    await log.write("stderr", Buffer.from("no line end"));
    expect(await log.close()).toEqual({ bytes: 267, cutBytes: 0, error: null });
    expect(await readFile(path)).toEqual(Buffer.concat([bytes, Buffer.from("no line end")]));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(dir)).toEqual(["output.log"]);
  });

  test("keeps head and tail of a large one, and says exactly how much is missing between", async () => {
    const log = await openOutputLog(path, { maxBytes: 16 * 1024 });
    const all = lines(0, 10_000);
    for (let at = 0; at < all.length; at += 1000) await log.write("stdout", all.subarray(at, at + 1000));
    const summary = await log.close();
    const text = (await readFile(path)).toString();
    const [head = "", tail = ""] = text.split(/\n\[bulkhead: [\d,]+ bytes cut here\]\n/);
    expect(head).toBe(all.subarray(0, 8192).toString());
    expect(all.subarray(all.length - tail.length).toString()).toBe(tail);
    expect(tail.length).toBeGreaterThanOrEqual(6144);
    expect(summary.cutBytes).toBe(all.length - head.length - tail.length);
    expect(text).toContain(`[bulkhead: ${summary.cutBytes.toLocaleString("en-US")} bytes cut here]`);
    expect((await stat(path)).size).toBeLessThan(16 * 1024 + 100);
    expect(await readdir(dir)).toEqual(["output.log"]);
  });

  test("a secret split over chunks and interleaved with the other stream reaches neither disk nor screen", async () => {
    const seen: string[] = [];
    const log = await openOutputLog(path, {
      secrets: ["sk-very-secret-token"],
      onText: (stream, text) => seen.push(`${stream}:${text}`),
    });
    await log.write("stdout", Buffer.from("key=sk-very-"));
    await log.write("stderr", Buffer.from("warning\n"));
    await log.write("stdout", Buffer.from("secret-token\nüü".slice(0, -1)));
    await log.write("stdout", Buffer.from("ü").subarray(0, 1));
    await log.write("stdout", Buffer.from("ü").subarray(1));
    await log.close();
    expect(await readFile(path, "utf8")).toBe("key=warning\n[redacted]\nüü");
    expect(seen).toEqual(["stdout:key=", "stderr:warning\n", "stdout:[redacted]\nü", "stdout:ü"]);
  });

  test("200 MB go through in flat memory and onto bounded disk", async () => {
    const chunk = Buffer.alloc(64 * 1024, "the same line over and over again\n");
    const log = await openOutputLog(path, { maxBytes: 4 * 1024 ** 2, secrets: ["a-secret-to-look-for"] });
    let peak = 0;
    let disk = 0;
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 3200; i += 1) {
      await log.write("stdout", chunk);
      if (i % 200 !== 0) continue;
      peak = Math.max(peak, process.memoryUsage().rss - before);
      const names = await readdir(dir);
      const sizes = await Promise.all(
        names.map((name) =>
          stat(join(dir, name))
            .then((s) => s.size)
            .catch(() => 0),
        ),
      );
      disk = Math.max(
        disk,
        sizes.reduce((sum, size) => sum + size, 0),
      );
    }
    const summary = await log.close();
    expect(summary.bytes).toBe(3200 * 64 * 1024);
    expect(summary.error).toBeNull();
    expect(disk).toBeLessThan(5 * 1024 ** 2);
    expect(peak).toBeLessThan(100 * 1024 ** 2);
  });

  test("goes on after a crash, also one in the middle of joining", async () => {
    const first = await openOutputLog(path, { maxBytes: 8192 });
    const all = lines(0, 1000);
    await first.write("stdout", all.subarray(0, 9000));
    // The first process is gone without a close; its last act was half a joining.
    const { promise, resolve } = Promise.withResolvers<void>();
    void first.write("stdout", Buffer.alloc(0)).then(resolve);
    await promise;
    await expect.poll(async () => (await listTailSegments(path)).length).toBeGreaterThan(3);
    await truncate(path, 4096 + 50);

    const second = await openOutputLog(path, { maxBytes: 8192 });
    await second.write("stdout", all.subarray(9000));
    await second.close();
    const text = (await readFile(path)).toString();
    expect(text.startsWith(all.subarray(0, 4096).toString())).toBe(true);
    expect(text.endsWith(all.subarray(all.length - 3000).toString())).toBe(true);
    expect(/\n\[bulkhead: ([\d,]+) bytes cut here\]\n/.exec(text)).not.toBeNull();
  });

  test("a disk that takes no more costs the log, not the attempt", async () => {
    const log = await openOutputLog("/dev/full");
    await log.write("stdout", Buffer.alloc(4 * 1024 ** 2));
    const summary = await log.close();
    expect(summary.error).toMatch(/ENOSPC/);
  });
});

describe("createOutputReader", () => {
  test("follows a log through head, tail and joining, without a gap or a repetition", async () => {
    const log = await openOutputLog(path, { maxBytes: 64 * 1024 });
    const reader = createOutputReader(path);
    const all = lines(0, 3600);
    let seen = await readAll(reader);
    for (let at = 0; at < all.length; at += 4000) {
      await log.write("stdout", all.subarray(at, at + 4000));
      seen += await readAll(reader);
    }
    await log.close();
    seen += await readAll(reader);
    await reader.close();
    expect(seen).toBe(all.toString());
  });

  test("one that falls behind is told what it missed", async () => {
    const log = await openOutputLog(path, { maxBytes: 16 * 1024 });
    const reader = createOutputReader(path);
    const all = lines(0, 10_000);
    await log.write("stdout", all.subarray(0, 10_000));
    await expect.poll(() => listTailSegments(path)).toHaveLength(1);
    let seen = await readAll(reader);
    await log.write("stdout", all.subarray(10_000));
    await log.close();
    seen += await readAll(reader);
    await reader.close();
    const [before = "", cut = "", tail = ""] = seen.split(/\n\[bulkhead: ([\d,]+) bytes cut here\]\n/);
    expect(before.length + Number(cut.replaceAll(",", "")) + tail.length).toBe(all.length);
    expect(all.toString().startsWith(before)).toBe(true);
    expect(all.toString().endsWith(tail)).toBe(true);
  });

  test("a log that is not there yet is empty, then read from its beginning", async () => {
    const reader = createOutputReader(path);
    expect(await readAll(reader)).toBe("");
    const log = await openOutputLog(path);
    await log.write("stdout", Buffer.from("hello"));
    await log.close();
    expect(await readAll(reader)).toBe("hello");
    await reader.close();
  });
});
