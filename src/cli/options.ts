import { InvalidArgumentError } from "commander";
import { parseDurationMs } from "../util/duration.ts";

/** Parses the value of an option that counts something, at least 1. */
export function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1) throw new InvalidArgumentError("use a whole number from 1");
  return count;
}

/** Parses a length of time (`90s`, `2h`, `7d`) into milliseconds. */
export function parseDurationOption(text: string): number {
  const ms = parseDurationMs(text);
  if (ms === null) throw new InvalidArgumentError("use a length of time such as 90s, 30m, 2h or 7d");
  return ms;
}
