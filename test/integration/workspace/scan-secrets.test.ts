import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findPatchSecrets, type ScanLimits } from "../../../src/workspace/scan-secrets.ts";
import { randomText, samplePrivateKey } from "../../support/sample-tokens.ts";

const TOKEN = `ghp${"_"}${randomText(36)}`;
const SECRET = "correct-horse-battery";

describe("findPatchSecrets", () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "bh-scan-"));
    git("init", "-q");
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const git = (...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.org", ...args], {
      cwd: root,
      encoding: "utf8",
    }).trim();
  const commit = (files: Readonly<Record<string, string | Buffer | null>>): string => {
    for (const [name, content] of Object.entries(files)) {
      const path = join(root, name);
      mkdirSync(dirname(path), { recursive: true });
      if (content === null) rmSync(path);
      else writeFileSync(path, content);
    }
    git("add", "-A");
    git("commit", "-q", "--allow-empty", "-m", "x");
    return git("rev-parse", "HEAD");
  };
  const scan = (parent: string, last: string, limits?: Partial<ScanLimits>) =>
    findPatchSecrets(join(root, ".git"), { parent, commit: last }, [SECRET], limits);

  test("tells path, rule and line of what came in, and never the value", async () => {
    const before = commit({ "a.txt": "one\ntwo\n", "gone.txt": `${SECRET}\n` });
    const after = commit({
      "a.txt": `one\nkey = "${SECRET}"\ntwo\ntoken: ${TOKEN}\n`,
      "sub/key.pem": `\n\n${samplePrivateKey()}\n`,
      "gone.txt": null,
      "fine.txt": "3f4e5d6c7b8a9f0e1d2c3b4a5968778695a4b3c2\n",
    });
    const found = await scan(before, after);
    expect(found).toEqual([
      { path: "a.txt", rule: "configured-secret", line: 2 },
      { path: "a.txt", rule: "github-token", line: 4 },
      { path: "sub/key.pem", rule: "private-key", line: 3 },
    ]);
    expect(JSON.stringify(found)).not.toContain(SECRET);
  });

  test("what the file held already is no news, wherever it stands now; in another file it is", async () => {
    const before = commit({ "a.txt": `x ${TOKEN} y\n` });
    const moved = commit({ "a.txt": `new\nnew\nrenamed ${TOKEN}\n` });
    expect(await scan(before, moved)).toEqual([]);
    const copied = commit({ "b.txt": TOKEN });
    expect(await scan(before, copied)).toEqual([{ path: "b.txt", rule: "github-token", line: 1 }]);
    expect(await scan(before, before)).toEqual([]);
  });

  test("a NUL byte, a link, a name and a mode change hide nothing", async () => {
    const before = commit({ "run.sh": `echo ${TOKEN}\n` });
    execFileSync("chmod", ["+x", join(root, "run.sh")]);
    symlinkSync(`nowhere/${SECRET}`, join(root, "link"));
    const after = commit({
      "data.bin": Buffer.concat([randomBytes(1000), Buffer.from(`\0\n${SECRET}\0`)]),
      [`${SECRET}.txt`]: "empty\n",
    });
    const found = await scan(before, after);
    expect(found.map(({ path, rule, line }) => [path, rule, line !== null])).toEqual([
      [`${SECRET}.txt`, "configured-secret", false],
      ["data.bin", "configured-secret", true],
      ["link", "configured-secret", true],
    ]);
  });

  test("the budget bounds what is read, and what was not read is told", async () => {
    const before = commit({});
    const filler = Buffer.alloc(100_000, "0123456789\n");
    const after = commit({
      "a.txt": Buffer.concat([filler, Buffer.from(SECRET)]),
      "b.txt": SECRET,
      "c.txt": SECRET,
    });
    const few = await scan(before, after, { maxFileBytes: 1000, maxTotalBytes: 1000 + SECRET.length });
    expect(few).toEqual([
      { path: "a.txt", rule: "not-scanned", line: null },
      { path: "b.txt", rule: "configured-secret", line: 1 },
      { path: "c.txt", rule: "not-scanned", line: null },
    ]);
    const whole = await scan(before, after);
    expect(whole.map(({ path, line }) => [path, line])).toEqual([
      ["a.txt", 9091],
      ["b.txt", 1],
      ["c.txt", 1],
    ]);
    const lines = commit({ "d.txt": `${TOKEN}\n`.repeat(5000) });
    expect(await scan(after, lines, { maxFindings: 7 })).toHaveLength(7);
  });
});
