import { spawn } from "node:child_process";
import { RunnerError } from "../model/runner-error.ts";

/** Runs a system tool (chown, mount, rm, ...) to its end with nothing but a PATH; any exit code but 0 throws. */
export async function runTool(
  command: string,
  args: readonly string[],
  options: { cwd?: string; input?: Buffer } = {},
): Promise<void> {
  const child = spawn(command, args, {
    cwd: options.cwd ?? "/",
    env: { PATH: process.env["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
    stdio: ["pipe", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    if (stderr.length < 4096) stderr += chunk.toString("utf8");
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.input);
  const ended = Promise.withResolvers<number | null>();
  child.once("error", ended.reject);
  child.once("close", ended.resolve);
  const exitCode = await ended.promise.catch((cause: unknown) => {
    throw new RunnerError("workspace-failed", `${command} could not be started`, {
      cause,
      data: { command },
    });
  });
  if (exitCode !== 0) {
    throw new RunnerError(
      "workspace-failed",
      `${command} ${args.slice(0, 8).join(" ")} ended with exit code ${exitCode}: ${stderr.trim()}`,
      { data: { command, args, exitCode } },
    );
  }
}
