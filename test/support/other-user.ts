import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { CliResult, Rig } from "./bulkhead-cli.ts";

const CHECKOUT = new URL("../..", import.meta.url).pathname;
const SOCKET = "/var/run/docker.sock";

/** A user without rights who runs the built command line. Made for a test, removed by `dispose`. */
export interface OtherUser {
  readonly uid: number;
  /** The command line as this user; `inGroup` is whether the engine's socket may be opened. */
  run(args: readonly string[], cwd: string, inGroup?: boolean): Promise<CliResult>;
  /** Any program as this user. */
  sh(script: string, cwd: string): string;
  dispose(): void;
}

/**
 * Makes the user and gives the rig to it. The checkout may lie where only root can go: the user's processes see it through a bind
 * mount in a mount namespace of their own, which is gone with them.
 */
export function createOtherUser(rig: Rig): OtherUser {
  const name = `bh-${rig.root
    .slice(-6)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "x")}`;
  must("useradd", ["--no-create-home", "--shell", "/bin/sh", name]);
  const uid = Number(must("id", ["-u", name]));
  const gid = Number(must("id", ["-g", name]));
  const app = join(rig.root, "app");
  const home = join(rig.root, "home");
  mkdirSync(app);
  mkdirSync(home);
  must("chown", ["-R", `${uid}:${gid}`, rig.root]);
  const env = { ...rig.env, HOME: home, USER: name, LOGNAME: name };
  const drop = (inGroup: boolean): string[] => [
    "setpriv",
    `--reuid=${uid}`,
    `--regid=${gid}`,
    inGroup ? `--groups=${statSync(SOCKET).gid}` : "--clear-groups",
    "--inh-caps=-all",
  ];
  const bind = 'mount --bind "$1" "$2" && shift 2 && exec "$@"';
  return {
    uid,
    run(args, cwd, inGroup = true) {
      const words = [
        join(app, process.execPath.slice(CHECKOUT.length)),
        join(app, "dist/cli/main.js"),
        ...args,
      ];
      const child = spawn(
        "unshare",
        ["--mount", "sh", "-c", bind, "sh", CHECKOUT, app, ...drop(inGroup), ...words],
        { cwd, env, stdio: ["ignore", "pipe", "pipe"] },
      );
      let stdout = "";
      let stderr = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        stdout += text;
      });
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        stderr += text;
      });
      return new Promise((resolve, reject) => {
        child.once("error", reject);
        child.once("close", (code) => resolve({ code, stdout, stderr }));
      });
    },
    sh: (script, cwd) => must("setpriv", [...drop(false).slice(1), "sh", "-euc", script], { cwd, env }),
    dispose: () => void must("userdel", [name]),
  };
}

function must(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): string {
  const done = spawnSync(program, args, { encoding: "utf8", ...options });
  if (done.status !== 0) throw new Error(`${program} ${args.join(" ")}: ${done.error ?? done.stderr}`);
  return done.stdout;
}
