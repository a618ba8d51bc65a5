/** The socket file of a door: where it may be, whether one there is alive, and how it comes to be with the right mode at once. */
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
} from "node:fs";
import { createConnection, type Server } from "node:net";
import { dirname, isAbsolute } from "node:path";
import { RunnerError } from "../model/runner-error.ts";

/** `sun_path` has 108 bytes, the last one is NUL. */
export const MAX_SOCKET_PATH_BYTES = 107;
/** With the six characters that mkdtemp adds, `.abcdef/s` is as long as `door.sock`. */
const TEMPORARY_PREFIX = "/.";
const TEMPORARY_NAME = "/s";
const MKDTEMP_RANDOM = "XXXXXX";

/** Which file a socket is bound as, to remove that one and no other. */
export interface BoundSocket {
  /** Removes the file where it is still this socket. */
  remove(): void;
}

/** Refuses a path that cannot be bound. The socket is first bound in a directory of its own beside it, so that path counts too. */
export function checkSocketPath(socketPath: string): void {
  if (!isAbsolute(socketPath)) {
    throw new RunnerError("config-invalid", `the socket path ${socketPath} is not absolute`);
  }
  const temporary = dirname(socketPath) + TEMPORARY_PREFIX + MKDTEMP_RANDOM + TEMPORARY_NAME;
  const bytes = Math.max(Buffer.byteLength(socketPath), Buffer.byteLength(temporary));
  if (bytes <= MAX_SOCKET_PATH_BYTES) return;
  throw new RunnerError(
    "config-invalid",
    `the socket path ${socketPath} needs ${bytes} bytes, Linux allows ${MAX_SOCKET_PATH_BYTES}`,
    {
      data: { socketPath, bytes, limitBytes: MAX_SOCKET_PATH_BYTES },
      hint: "use a state directory with a shorter path",
    },
  );
}

/** Passes where the path is free or holds the socket of a dead process; refuses a live one and any other file. */
export async function checkNobodyListens(socketPath: string): Promise<void> {
  const found = lstatSync(socketPath, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isSocket()) {
    throw new RunnerError("preflight-failed", `${socketPath} exists and is not a socket`, {
      data: { socketPath },
      hint: "move it away; it will not be overwritten",
    });
  }
  const answer = await tryConnect(socketPath);
  // Only these two say that nobody is there; a full backlog or a lacking right means somebody is.
  if (answer === "ECONNREFUSED" || answer === "ENOENT") return;
  throw new RunnerError("preflight-failed", `another process listens on ${socketPath}`, {
    data: { socketPath, answer },
    hint: "stop it first, or use another state directory",
  });
}

/**
 * Binds `server` to `socketPath`, replacing what is there. The socket is bound in a new directory that only its owner can enter, given
 * its mode there, and renamed into place: at no moment can anyone connect whom the mode keeps out.
 */
export async function bindSocket(server: Server, socketPath: string, mode: number): Promise<BoundSocket> {
  const directory = mkdtempSync(dirname(socketPath) + TEMPORARY_PREFIX);
  const temporary = directory + TEMPORARY_NAME;
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(temporary, () => {
        server.off("error", reject);
        resolve();
      });
    });
    chmodSync(temporary, mode);
    renameSync(temporary, socketPath);
    rmdirSync(directory);
  } catch (cause) {
    server.close();
    rmSync(directory, { recursive: true, force: true });
    throw new RunnerError("internal", `cannot open a socket at ${socketPath}`, {
      cause,
      data: { socketPath },
    });
  }
  const { dev, ino } = statSync(socketPath);
  return {
    remove() {
      const now = lstatSync(socketPath, { throwIfNoEntry: false });
      if (now?.dev === dev && now.ino === ino) unlinkSync(socketPath);
    },
  };
}

function tryConnect(socketPath: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath);
    socket.once("connect", () => {
      socket.destroy();
      resolve("connected");
    });
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "unknown"));
  });
}
