import { describe, expect, test } from "vitest";
import { formatAttempt, formatRunId, runIdSchema, taskIdSchema } from "../../../src/model/ids.ts";

describe("task ids", () => {
  test.each(["a", "auth_refactor", "A-1", "x.y", "0", "a".repeat(64)])("%s is one", (id) => {
    expect(taskIdSchema.safeParse(id).success).toBe(true);
  });

  test.each([
    "",
    "a".repeat(65),
    "../x",
    "a/b",
    "a..b",
    ".a",
    "-a",
    "a.",
    "a.lock",
    "a b",
    "ä",
    "a\n",
    "a\0",
  ])("%j is none: unfit for a path, a container name or a git ref", (id) => {
    expect(taskIdSchema.safeParse(id).success).toBe(false);
  });
});

describe("run ids", () => {
  test("sort by time and parse back", () => {
    const early = formatRunId("2026-09-08T07:06:05.999Z", "ffffff");
    const late = formatRunId("2026-11-08T07:06:05.000Z", "000000");
    expect(early).toBe("20260908-070605-ffffff");
    expect(early < late).toBe(true);
    expect(runIdSchema.parse(late)).toBe(late);
  });

  test("an attempt is written with its number", () => {
    const key = {
      runId: formatRunId("2026-09-08T07:06:05Z", "000001"),
      taskId: taskIdSchema.parse("t"),
      attempt: 3,
    };
    expect(formatAttempt(key)).toBe("20260908-070605-000001/t#3");
  });
});
