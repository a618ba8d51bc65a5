/**
 * Theory of operation. An engine behind `ssh://` is reached the way the docker client does it: the system's own `ssh` runs
 * `docker system dial-stdio` on the far side, and its standard input and output are the connection. So keys, ~/.ssh/config and,
 * above all, the known-hosts check are the user's own; nothing here decides whom to trust.
 *
 * LIMITATION: each request is a new ssh process. `ControlMaster auto` in ~/.ssh/config makes that cheap.
 */
import { spawn } from "node:child_process";
import { Agent } from "node:http";
import { Duplex } from "node:stream";

export interface SshTarget {
  readonly host: string;
  readonly user: string | null;
  readonly port: string | null;
}

/** An http agent whose connections are ssh processes. */
export function createSshAgent(target: SshTarget, env: Readonly<Record<string, string | undefined>>): Agent {
  const agent = new Agent({ keepAlive: false });
  // A host that starts with a dash would be read as an option; `--` ends the options for every ssh that matters.
  const argv = [
    ...["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"],
    ...(target.user === null ? [] : ["-l", target.user]),
    ...(target.port === null ? [] : ["-p", target.port]),
    ...["--", target.host, "docker", "system", "dial-stdio"],
  ];
  // Node calls this per request; a Duplex is enough for its http client, the types ask for more.
  agent.createConnection = () => dial(argv, env);
  return agent;
}

function dial(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Duplex {
  const child = spawn("ssh", argv, { env, stdio: ["pipe", "pipe", "ignore"] });
  const connection = Duplex.from({ readable: child.stdout, writable: child.stdin });
  child.once("error", (cause) => connection.destroy(cause));
  connection.once("close", () => child.kill("SIGTERM"));
  return connection;
}
