import { readFileSync } from "node:fs";

/** The version of this package, from its package.json (two levels up from both src/cli and dist/cli). */
export function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(text) as { version: string };
  return version;
}
