/** What every subcommand is given: where things are, and where to write. Built once in main.ts. */
export interface CliContext {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `$BULKHEAD_STATE_DIR`, else `$XDG_STATE_HOME/bulkhead`, else `~/.local/state/bulkhead`. */
  readonly stateDir: string;
  /** `$BULKHEAD_CACHE_DIR`, else `$XDG_CACHE_HOME/bulkhead`, else `~/.cache/bulkhead`. */
  readonly cacheDir: string;
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
}

/** Exit codes by fault: who has to act. */
export const EXIT = {
  done: 0,
  taskFailed: 1,
  usage: 2,
  host: 3,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
