import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { takeSupervisorLock } from "../../../src/supervisor/lock.ts";

const LOCK_MODULE = new URL("../../../src/supervisor/lock.ts", import.meta.url).href;

describe("the supervisor's lock", () => {
  let stateDir: string;
  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), "bh-lock-"));
  });
  afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

  test("is had by one process at a time", async () => {
    const holder = await startHolder(stateDir);
    expect(takeSupervisorLock(stateDir)).toBeNull();
    holder.stdin?.end();
    await once(holder, "exit");
    const lock = takeSupervisorLock(stateDir);
    expect(lock).not.toBeNull();
    lock?.release();
  });

  test("is free again after its holder was killed", async () => {
    const holder = await startHolder(stateDir);
    holder.kill("SIGKILL");
    await once(holder, "exit");
    const lock = takeSupervisorLock(stateDir);
    expect(lock).not.toBeNull();
    lock?.release();
  });

  test("can be given back and taken again", () => {
    takeSupervisorLock(stateDir)?.release();
    const again = takeSupervisorLock(stateDir);
    expect(again).not.toBeNull();
    again?.release();
  });
});

/** A process that takes the lock, says so, and holds it until its standard input ends. */
async function startHolder(stateDir: string) {
  const program = `
    import { takeSupervisorLock } from ${JSON.stringify(LOCK_MODULE)};
    const lock = takeSupervisorLock(${JSON.stringify(stateDir)});
    process.stdout.write(lock ? "held" : "refused");
    process.stdin.on("end", () => process.exit(0)).resume();
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  expect(said.toString()).toBe("held");
  return child;
}
