import { spawn } from "node:child_process";
import { once } from "node:events";
import { RunnerError } from "../model/runner-error.ts";

/**
 * Runs `work` while no other process of this machine does the same under this path.
 *
 * Theory of operation: the lock is the kernel's (`flock`), held by a child that lives exactly as long as the pipe to it, so it
 * goes when this process dies, however it dies. There are no stale locks and nothing to poll. Not re-entrant.
 */
export async function withFileLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const holder = spawn("flock", ["--exclusive", path, "sh", "-c", "echo locked; exec cat >/dev/null"], {
    cwd: "/",
    stdio: ["pipe", "pipe", "ignore"],
  });
  holder.stdin.on("error", () => undefined);
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => undefined);
  const fail = (cause?: unknown) =>
    gone.reject(
      new RunnerError("workspace-failed", `the lock file ${path} could not be locked`, {
        cause,
        data: { path },
        hint: "bulkhead needs `flock` (util-linux) and a writable cache directory.",
      }),
    );
  holder.once("error", fail);
  holder.once("close", () => fail());
  try {
    await Promise.race([once(holder.stdout, "data"), gone.promise]);
    return await work();
  } finally {
    holder.stdin.end();
  }
}
