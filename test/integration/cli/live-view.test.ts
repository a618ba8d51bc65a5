import { spawn } from "node:child_process";
import { describe, expect, test } from "vitest";
import { displayWidth } from "../../../src/cli/render/display-width.ts";
import { replayScreen } from "../../support/terminal-screen.ts";

const STAGE = new URL("../../support/live-view-stage.ts", import.meta.url).pathname;

/** Runs the staged view under a real pseudo terminal of this size and gives every byte it wrote. */
async function playOnTerminal(
  size: { columns: number; rows: number },
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const command = `stty cols ${size.columns} rows ${size.rows} && exec '${process.execPath}' '${STAGE}'`;
  const child = spawn("script", ["--quiet", "--return", "--flush", "--command", command, "/dev/null"], {
    env: { PATH: process.env["PATH"], TERM: "xterm-256color", LANG: "C.UTF-8", SHELL: "/bin/sh", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const pieces: Buffer[] = [];
  child.stdout.on("data", (piece: Buffer) => pieces.push(piece));
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const text = Buffer.concat(pieces).toString();
  expect(code, text).toBe(0);
  return text;
}

describe("the live view on a pseudo terminal", () => {
  test("redraws in place, stage by stage, and leaves only the report", async () => {
    const size = { columns: 80, rows: 30 };
    const bytes = await playOnTerminal(size, { NO_COLOR: "1" });
    const { lines, marks, colors } = replayScreen(bytes, size);

    expect(marks.get("started")).toEqual([
      "20261130-142501-3f9a2c  3 running · 2 waiting  0:02",
      "▸ auth      0:01                   preparing the workspace",
      "▸ memory    0:01                   preparing the workspace",
      "▸ images    0:01                   preparing the workspace",
      "· docs                             waits for memory",
      "· release                          waits for docs, auth",
      "",
    ]);
    expect(marks.get("output")?.[1]).toBe(
      "▸ auth      0:02   90 %   320 MiB  preparing the workspace · 編集中 src/auth.ts",
    );
    expect(marks.get("failed")).toEqual([
      "20261130-142501-3f9a2c  1 running · 1 succeeded · 1 failed · 2 held  0:09",
      "▸ auth      0:08   90 %   320 MiB  preparing the workspace · 編集中 src/auth.ts",
      "✗ memory    0:08                   out of memory: cap 512 MiB, peak 512 MiB",
      "✓ images    0:04                   no changes",
      "◌ docs                             needs memory, which did not succeed",
      "◌ release                          needs memory, which did not succeed",
      "",
    ]);
    // A warning stays above what is redrawn.
    expect(marks.get("warned")?.slice(0, 3)).toEqual([
      "warning: auth: caps: tmp is not enforced",
      "20261130-142501-3f9a2c  2 succeeded · 1 failed · 2 held  1:12",
      "✓ auth      1:12                   2 files +40 -2, 1 binary",
    ]);
    expect(marks.get("cleared")).toEqual(["warning: auth: caps: tmp is not enforced", ""]);
    expect(lines[1]).toBe("Run 20261130-142501-3f9a2c failed in 1m 12s: 2 succeeded · 1 failed · 2 held");
    expect(lines.filter((line) => line.includes("▸"))).toEqual([]);
    expect(colors).toBe(0);
  });

  test.each([
    { columns: 40, rows: 24 },
    { columns: 200, rows: 24 },
    { columns: 80, rows: 5 },
  ])("fits into $columns columns and $rows rows", async (size) => {
    const bytes = await playOnTerminal(size, {});
    const { marks, colors } = replayScreen(bytes, size);
    for (const stage of ["started", "output", "failed"]) {
      const lines = marks.get(stage) ?? [];
      // Never scrolled, never wrapped: the head is on top, the cursor's line at the bottom.
      expect(lines[0], stage).toMatch(/0:0\d/);
      expect(lines.at(-1), stage).toBe("");
      expect(lines.length, stage).toBe(Math.min(7, size.rows));
      for (const line of lines) expect(displayWidth(line)).toBeLessThan(size.columns);
    }
    expect(colors).toBeGreaterThan(10);
  });
});
