import type { IncomingMessage } from "node:http";
import type { Container } from "dockerode";
import type { SandboxSpec } from "../sandbox.ts";
import { envValue } from "./create-body.ts";
import { type EngineClient, statusOf } from "./engine-client.ts";

const MAX_DIRECTORIES = 32;
const ANY_EXECUTE_BIT = 0o111;
/** Bits of Go's `os.FileMode`, which the engine's answer uses. */
const GO_MODE_DIR = 0x8000_0000;
const GO_MODE_SYMLINK = 0x0800_0000;

/**
 * Whether the command of an ended container cannot have been started, asked of its file system rather than guessed
 * from what was printed: a shell that ends with 127 for a command of its own is no missing command of the task.
 * LIMITATION: true also for a program that deleted itself from a writable mount and then ended with 126 or 127.
 */
export async function isCommandMissing(
  client: EngineClient,
  container: Container,
  spec: SandboxSpec,
): Promise<boolean> {
  const command = spec.argv[0] ?? "";
  const paths = command.includes("/")
    ? [command.startsWith("/") ? command : `${spec.workingDir}/${command}`]
    : (envValue(spec, "PATH") ?? "")
        .split(":")
        .filter((directory) => directory.startsWith("/"))
        .slice(0, MAX_DIRECTORIES)
        .map((directory) => `${directory}/${command}`);
  for (const path of paths) {
    const mode = await modeOf(client, container, path);
    if (mode === "unknown") return false;
    if (mode === null || (mode & GO_MODE_DIR) !== 0) continue;
    if ((mode & GO_MODE_SYMLINK) !== 0 || (mode & ANY_EXECUTE_BIT) !== 0) return false;
  }
  return true;
}

async function modeOf(
  client: EngineClient,
  container: Container,
  path: string,
): Promise<number | null | "unknown"> {
  try {
    const answer: IncomingMessage = await client.call("look for the command", () =>
      container.infoArchive({ path }),
    );
    answer.resume();
    const header = answer.headers["x-docker-container-path-stat"];
    if (typeof header !== "string") return "unknown";
    const stat: unknown = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    if (typeof stat !== "object" || stat === null || !("mode" in stat)) return "unknown";
    return typeof stat.mode === "number" ? stat.mode : "unknown";
  } catch (error) {
    return statusOf(error) === 404 ? null : "unknown";
  }
}
