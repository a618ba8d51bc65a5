import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { DEFAULT_BUS_LIMITS } from "../../../src/bus/caller-bus.ts";
import { DEFAULT_DOOR_LIMITS } from "../../../src/door/door.ts";
import { BUS_METHODS } from "../../../src/protocol/bus-methods.ts";
import { ERROR_CODES } from "../../../src/protocol/error-codes.ts";

const page = await readFile(new URL("../../../docs/bus.md", import.meta.url), "utf8");
const methods = page.slice(page.indexOf("## Methods"), page.indexOf("## Errors"));

test("docs/bus.md has a row for every method, with every param", () => {
  for (const [name, { params }] of Object.entries(BUS_METHODS)) {
    const row = methods.split("\n").find((line) => line.startsWith(`| \`${name}\` |`)) ?? "";
    for (const [field, schema] of Object.entries(params.shape)) {
      const isOptional = schema.safeParse(undefined).success;
      expect(row).toContain(isOptional ? `\`${field}?\`` : `\`${field}\``);
    }
    expect(row).not.toBe("");
  }
});

test("docs/bus.md has every code with its name and sentence", () => {
  for (const [name, { code, meaning }] of Object.entries(ERROR_CODES)) {
    expect(page).toContain(`| ${code} | ${name} | ${meaning} |`);
  }
});

test("the limits in docs/bus.md are those in the code", () => {
  const mib = (bytes: number) => `${bytes / 1024 / 1024} MiB`;
  for (const text of [
    `| frame or body | ${mib(DEFAULT_DOOR_LIMITS.maxFrameBytes)};`,
    `| connections of one door | ${DEFAULT_DOOR_LIMITS.maxConnections} |`,
    `| calls of one connection in work | ${DEFAULT_DOOR_LIMITS.maxInFlight};`,
    `${DEFAULT_DOOR_LIMITS.partialFrameTimeoutMs / 1000} s from its first byte`,
    `| answers a peer leaves unread | ${mib(DEFAULT_DOOR_LIMITS.maxQueuedBytes)},`,
    `| calls | ${DEFAULT_BUS_LIMITS.callsPerSecond.toLocaleString("en")} a second, ${DEFAULT_BUS_LIMITS.callBurst.toLocaleString("en")} in a burst |`,
    `| bytes sent | ${mib(DEFAULT_BUS_LIMITS.sentCharsPerSecond)} a second, ${mib(DEFAULT_BUS_LIMITS.sentCharsBurst)} in a burst |`,
    `| \`get_file\` | ${mib(DEFAULT_BUS_LIMITS.maxFileBytes)} a file |`,
    `| artifacts | ${DEFAULT_BUS_LIMITS.maxArtifacts} of an attempt, ${mib(DEFAULT_BUS_LIMITS.maxArtifactBytesInAll)} together;`,
  ]) {
    expect(page).toContain(text);
  }
});
