import { type ChildProcess, spawn } from "node:child_process";
import { CLI, type Rig } from "./bulkhead-cli.ts";
import { waitFor } from "./e2e-rig.ts";

/** The built command line on a real pseudo terminal, made by util-linux' script(1). */
export interface TerminalSession {
  /** Every byte written so far. */
  readonly text: string;
  type(keys: string): void;
  /** Waits for a text to appear `times` times in all. */
  sees(text: string, times?: number): Promise<void>;
  /** Exit code of the command. */
  readonly ended: Promise<number | null>;
  hangUp(): void;
}

export const CTRL_C = "\u0003";

export function openTerminal(rig: Rig, args: readonly string[], cwd: string): TerminalSession {
  const command = [process.execPath, CLI, ...args].map((word) => `'${word}'`).join(" ");
  const child: ChildProcess = spawn(
    "script",
    ["--quiet", "--return", "--flush", "--command", `stty cols 100 rows 30 && exec ${command}`, "/dev/null"],
    {
      cwd,
      env: { ...rig.env, TERM: "xterm-256color", LANG: "C.UTF-8", SHELL: "/bin/sh" },
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return {
    get text() {
      return text;
    },
    type: (keys) => void child.stdin?.write(keys),
    async sees(wanted, times = 1) {
      try {
        await waitFor(`"${wanted}" on the terminal`, () => text.split(wanted).length > times);
      } catch (error) {
        throw new Error(`the terminal showed: ${JSON.stringify(text.slice(-2000))}`, { cause: error });
      }
    },
    ended,
    hangUp: () => void child.kill("SIGHUP"),
  };
}
