import { describe, expect, test } from "vitest";
import { displayWidth, fitToWidth, truncateToWidth } from "../../../src/cli/render/display-width.ts";
import { clockTime, renderFrame } from "../../../src/cli/render/frame.ts";
import { type GraphNode, levelsOf, renderGraph } from "../../../src/cli/render/graph.ts";
import { choosePalette, createPalette } from "../../../src/cli/render/palette.ts";
import { renderReport } from "../../../src/cli/render/report.ts";
import { renderRunList, renderStatus } from "../../../src/cli/render/status.ts";
import {
  fold,
  id,
  log,
  mixedRun,
  START_MS,
  sampleTask,
  started,
  submitted,
} from "../../support/sample-run.ts";

const plain = createPalette({ isColored: false, isUnicode: true });
const report = { palette: plain, stateDir: "/state", nowMs: START_MS + 100_000 };

describe("renderReport", () => {
  test("says what changed, what failed and why, what was held because of it, and what to do next", () => {
    expect(renderReport(fold(mixedRun()), report)).toBe(`\
Run 20261130-142501-3f9a2c failed in 1m 12s: 2 succeeded · 1 failed · 2 held

Changed
  ✓ auth    2 files +40 -2, 1 binary  (1m 12s)
  ✓ images  no changes  (4s)

Failed
  ✗ memory: out of memory: cap 512 MiB, peak 512 MiB (8.4s, 2 attempts)
      The kernel killed the main process (exit code 137).
      next: raise caps.memory above 512 MiB, or let the task use fewer processes at once
      log:  /state/runs/20261130-142501-3f9a2c/memory/2/output.log

Held
  ◌ because of memory: docs, release
  Work saved: 2 tasks, 2 attempts (up to 6 with retries) not started; an attempt of this run took 4.4s (median).

Warnings
  auth: caps: tmp is not enforced

Next
  bulkhead diff 20261130-142501-3f9a2c         see what changed
  bulkhead apply 20261130-142501-3f9a2c        take it over into your repository
  bulkhead logs 20261130-142501-3f9a2c memory  see what it printed
`);
  });

  test("a run that is not over has no next steps", () => {
    const text = renderReport(fold(mixedRun(), 5_500), report);
    expect(text).toMatch(/^Run \S+ running for 1m 40s: 1 running · 1 retrying · 2 waiting · 1 succeeded\n/);
    expect(text).not.toContain("Next");
  });
});

describe("renderFrame", () => {
  const details = new Map([
    [
      "auth",
      {
        cpuPercent: 87.2,
        memoryBytes: 320 * 1024 ** 2,
        lastLine: "日本語 in the output, which goes on and on and on",
      },
    ],
  ]);
  const frame = (columns: number, rows = 24, untilMs = 5_500) =>
    renderFrame(fold(mixedRun(), untilMs), details, {
      columns,
      rows,
      nowMs: START_MS + 5_600,
      palette: plain,
    });

  test("80 columns", () => {
    expect(frame(80)).toEqual([
      "20261130-142501-3f9a2c  1 running · 1 retrying · 2 waiting · 1 succeeded  0:05",
      "▸ auth      0:05   87 %   320 MiB  preparing the workspace · 日本語 in the out…",
      "↻ memory    0:05                   attempt 2 in 1s: out of memory: cap 512 MiB…",
      "✓ images    0:04                   no changes",
      "· docs                             waits for memory",
      "· release                          waits for docs, auth",
    ]);
  });

  test("40 columns leave out CPU, memory and the run's name", () => {
    expect(frame(40)).toEqual([
      "0:05  1 running · 1 retrying · 2 waiti…",
      "▸ auth      0:05  preparing the worksp…",
      "↻ memory    0:05  attempt 2 in 1s: out…",
      "✓ images    0:04  no changes",
      "· docs            waits for memory",
      "· release         waits for docs, auth",
    ]);
  });

  test.each([20, 40, 72, 80, 200])("no line is as wide as a terminal of %i columns", (columns) => {
    for (const line of frame(columns)) expect(displayWidth(line)).toBeLessThan(columns);
  });

  test("more tasks than rows: what runs and what failed is shown, the rest counted", () => {
    const tasks = Array.from({ length: 1000 }, (_, i) => sampleTask(`task-${i}`));
    const view = fold(log([0, submitted(tasks)], [1, started("task-500")], [1, started("task-7")]));
    const lines = renderFrame(view, new Map(), {
      columns: 80,
      rows: 8,
      nowMs: START_MS + 2000,
      palette: plain,
    });
    expect(lines.map((line) => line.trimEnd())).toEqual([
      "20261130-142501-3f9a2c  2 running · 998 waiting  0:02",
      "▸ task-7     0:01                   preparing the workspace",
      "▸ task-500   0:01                   preparing the workspace",
      "· task-0                            ready",
      "· task-1                            ready",
      "· task-2                            ready",
      "  and 995 more tasks",
    ]);
  });

  test("what a task says of itself cannot steer the terminal or fill the line", () => {
    const view = fold(
      log(
        [0, submitted([sampleTask("a")])],
        [1, started("a")],
        [
          2,
          {
            type: "status-reported",
            taskId: id("a"),
            attempt: 1,
            state: "x",
            message: `\u001b[2J\n${"y".repeat(9999)}`,
            percent: 50,
          },
        ],
      ),
    );
    const [, line = ""] = renderFrame(view, new Map(), {
      columns: 80,
      rows: 24,
      nowMs: START_MS,
      palette: plain,
    });
    expect(line).toMatch(/^▸ a {6}0:00 {19}50 % y+…$/);
    expect(displayWidth(line)).toBe(79);
  });

  test("times keep counting past hours", () => {
    expect([0, 59_999, 61_000, 3_723_000].map(clockTime)).toEqual(["0:00", "0:59", "1:01", "1:02:03"]);
  });
});

describe("renderStatus", () => {
  test("a line for each task, with what it waits for or why it ended", () => {
    const text = renderStatus(fold(mixedRun()), {
      palette: plain,
      columns: 80,
      nowMs: START_MS,
      isDriven: false,
    });
    expect(text).toBe(`\
Run 20261130-142501-3f9a2c  failed in 1m 12s
On  /home/ada/shop at aaaaaaaaaaaa (main)
    2 succeeded · 1 failed · 2 held

✓ auth     succeeded   1m 12s   2 files +40 -2, 1 binary
✗ memory   failed        8.4s   out of memory: cap 512 MiB, peak 512 MiB
✓ images   succeeded       4s   no changes
◌ docs     held                 needs memory, which did not succeed
◌ release  held                 needs memory, which did not succeed
`);
  });

  test("a run that nobody drives is not called running", () => {
    const view = fold(mixedRun(), 5_500);
    const options = { palette: plain, columns: 100, nowMs: START_MS + 6_000 };
    expect(renderStatus(view, { ...options, isDriven: false })).toContain(
      "interrupted: no supervisor drives it",
    );
    expect(renderStatus(view, { ...options, isDriven: true })).toContain("running for 6s");
    expect(renderRunList([view], { ...options, isDriven: () => false })).toBe(
      "20261130-142501-3f9a2c  interrupted       5s  1 running · 1 retrying · 2 waiting · 1 succeeded  /h…\n",
    );
  });
});

describe("renderGraph", () => {
  const node = (name: string, dependsOn: string[] = [], state: GraphNode["state"] = null): GraphNode => ({
    id: name,
    title: name === "end" ? 'The "end" <b>' : name,
    dependsOn,
    priority: 10,
    state,
  });
  const nodes = [node("c", ["a", "b"]), node("a"), node("b", ["a"]), node("end", ["c"])];
  const options = { palette: plain, columns: 80 };

  test("text: levels, with what each task needs", () => {
    expect(renderGraph(nodes, { ...options, format: "text" })).toBe(
      'Level 1\n  a\nLevel 2\n  b     ← a\nLevel 3\n  c     ← a, b\nLevel 4\n  end   ← c  The "end" <b>\n',
    );
  });

  test("dot and mermaid quote what would break them", () => {
    expect(renderGraph(nodes, { ...options, format: "dot" })).toContain(
      '"end" [label="end\\nThe \\"end\\" <b>"];',
    );
    expect(renderGraph(nodes, { ...options, format: "mermaid" })).toContain(
      '  t3["end<br/>The #34;end#34; #60;b#62;"]\n  t1 --> t0\n  t2 --> t0\n  t1 --> t2\n  t0 --> t3',
    );
  });

  test("json has the levels", () => {
    const { tasks } = JSON.parse(renderGraph(nodes, { ...options, format: "json" }));
    expect(tasks.map((task: { id: string; level: number }) => [task.id, task.level])).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 3],
      ["end", 4],
    ]);
  });

  test("a chain of 50,000 tasks needs no deep stack", () => {
    const chain = Array.from({ length: 50_000 }, (_, i) => node(`t${i}`, i === 0 ? [] : [`t${i - 1}`]));
    expect(levelsOf(chain)).toHaveLength(50_000);
  });
});

describe("choosePalette", () => {
  test.each([
    ["a terminal in UTF-8", { LANG: "en_US.UTF-8" }, true, true, true],
    ["NO_COLOR", { LANG: "en_US.UTF-8", NO_COLOR: "1" }, true, false, true],
    ["an empty NO_COLOR", { LANG: "en_US.UTF-8", NO_COLOR: "" }, true, true, true],
    ["a dumb terminal", { LANG: "C.UTF-8", TERM: "dumb" }, true, false, true],
    ["a terminal in another charset", { LANG: "C" }, true, true, false],
    ["a pipe", { LANG: "C" }, false, false, true],
  ])("%s", (_, env, isTty, isColored, isUnicode) => {
    expect(choosePalette(env, isTty)).toMatchObject({ isColored, isUnicode });
  });

  test("without colours there is no escape sequence in anything", () => {
    const colored = createPalette({ isColored: true, isUnicode: false });
    expect(renderReport(fold(mixedRun()), report)).not.toContain("\u001b");
    expect(renderReport(fold(mixedRun()), { ...report, palette: colored })).toContain("\u001b[31m");
    expect(renderReport(fold(mixedRun()), { ...report, palette: colored })).toContain("x");
  });
});

describe("display width", () => {
  test.each([
    ["abc", 3],
    ["日本語", 6],
    ["é", 1],
    ["👩‍💻", 2],
    ["🇩🇪", 2],
    ["✓▸…", 3],
    ["❤️", 2],
    ["", 0],
  ])("%s takes %i columns", (text, width) => {
    expect(displayWidth(text)).toBe(width);
  });

  test("text is cut between characters, never inside one", () => {
    expect(truncateToWidth("日本語", 6)).toBe("日本語");
    expect(truncateToWidth("日本語", 5)).toBe("日本…");
    expect(truncateToWidth("日本語", 4)).toBe("日…");
    expect(truncateToWidth("a👩‍💻b", 3)).toBe("a…");
    expect(truncateToWidth("abc", 0)).toBe("");
    expect(fitToWidth("日本語", 4)).toBe("日… ");
  });
});
