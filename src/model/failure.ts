import type { CapReport } from "./caps.ts";
import type { TaskId } from "./ids.ts";

/**
 * Who is to blame, which decides retry, wording and exit code:
 * `agent` what ran inside, `task` how it was specified, `host` the machine or engine, `runner` bulkhead itself.
 */
export type Fault = "agent" | "task" | "host" | "runner";

/** Where in an attempt's life a host-side step failed. */
export type AttemptPhase = "snapshot" | "door" | "create" | "start" | "wait" | "collect" | "release";

/** Why an attempt did not end in a patch. Expected outcomes are values (docs/architecture.md, Errors). */
export type Failure =
  | {
      readonly reason: "exit";
      readonly fault: "agent";
      readonly exitCode: number;
      readonly signal?: string;
      readonly hint?: string;
    }
  | {
      readonly reason: "timeout";
      readonly fault: "agent";
      readonly limitMs: number;
      readonly by: "host" | "container";
    }
  | {
      readonly reason: "oom";
      readonly fault: "agent";
      /** `child`: the main process lived on, a process below it was killed. */
      readonly victim: "main" | "child";
      readonly limitBytes: number;
      readonly peakBytes: number | null;
      readonly exitCode: number;
    }
  | {
      readonly reason: "pids";
      readonly fault: "agent";
      readonly limit: number;
      /** Most processes at once; absent in older logs. */
      readonly peak?: number | null;
      readonly denied: number;
      readonly exitCode: number;
    }
  | {
      readonly reason: "disk-full";
      readonly fault: "agent";
      readonly limitBytes: number;
      /** What lay there at the end, or when it was stopped. This and what follows is absent in older logs. */
      readonly peakBytes?: number;
      /** The cap that was reached: `disk` for the workspace, `tmp` for a scratch file system. */
      readonly cap?: "disk" | "tmp";
      /** Where inside, e.g. /tmp. */
      readonly place?: string;
      /** What ran out there: room, or entries for further files. */
      readonly of?: "bytes" | "files";
      /** `kernel` refused the write; `watch`: nothing did, and bulkhead found it over the cap. */
      readonly by?: "kernel" | "watch";
      readonly exitCode: number;
    }
  | {
      readonly reason: "killed";
      readonly fault: "host";
      readonly signal: string;
      /** How it is known: the engine was told to by somebody else, or the host was killing for memory meanwhile. */
      readonly evidence?: "engine-order" | "host-memory";
    }
  | { readonly reason: "cancelled"; readonly fault: "task" }
  | { readonly reason: "agent-error"; readonly fault: "agent"; readonly message: string }
  | {
      readonly reason: "engine-lost";
      readonly fault: "host";
      readonly phase: AttemptPhase;
      readonly message: string;
    }
  | {
      readonly reason: "host-error";
      readonly fault: "host";
      readonly phase: AttemptPhase;
      readonly message: string;
    }
  | { readonly reason: "image-missing"; readonly fault: "host"; readonly image: string }
  | {
      readonly reason: "command-not-found";
      readonly fault: "task";
      readonly command: string;
      readonly exitCode: number;
    }
  | { readonly reason: "caps-not-enforced"; readonly fault: "host"; readonly caps: readonly CapReport[] }
  | {
      readonly reason: "parents-conflict";
      readonly fault: "task";
      readonly parents: readonly TaskId[];
      readonly files: readonly string[];
    }
  | {
      readonly reason: "result-refused";
      readonly fault: "agent";
      readonly problems: readonly ResultProblem[];
    }
  | {
      readonly reason: "runner-bug";
      readonly fault: "runner";
      readonly phase: AttemptPhase;
      readonly message: string;
    };

export type FailureReason = Failure["reason"];

/** One thing in the workspace that cannot become part of a patch. `path` is shown with unsafe bytes escaped. */
export interface ResultProblem {
  readonly path: string;
  readonly kind:
    | "special-file"
    | "symlink-outside"
    | "git-directory"
    | "too-many-files"
    | "too-many-bytes"
    | "path-too-long"
    | "too-deep"
    | "unreadable"
    | "bad-name";
  readonly detail: string;
}
