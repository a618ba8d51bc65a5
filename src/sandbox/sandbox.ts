/**
 * The face of `sandbox/`: one container per attempt on a Docker-compatible engine. Interfaces only; the driver is in `docker/`.
 *
 * Life-cycle in the types: an `Engine` creates a `CreatedSandbox`, which becomes a `RunningSandbox`, whose `ended` gives a
 * `SandboxExit`. The order is created, attached, started, waited, read, removed (design, decision 10), never AutoRemove.
 */
import type { CapReport, Caps, ResourceUse } from "../model/caps.ts";
import type { Failure } from "../model/failure.ts";
import type { AttemptKey } from "../model/ids.ts";
import type { Result } from "../util/result.ts";

/** Labels on everything created; clean-up goes by these, never by name. */
export const LABELS = {
  state: "bulkhead.state",
  run: "bulkhead.run",
  task: "bulkhead.task",
  attempt: "bulkhead.attempt",
} as const;

export interface EngineInfo {
  readonly endpoint: string;
  readonly product: "docker" | "podman";
  readonly version: string;
  readonly apiVersion: string;
  readonly storageDriver: string;
  readonly cgroupVersion: 1 | 2;
  readonly rootless: boolean;
  /** First host uid of a userns-remap, else 0: the container's uid 10001 is `userBase + 10001` on the host. */
  readonly userBase: number;
  /** True where paths of this process mean the same to the engine (probed by the driver, not assumed). */
  readonly sharesFilesystem: boolean;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly runtimes: readonly string[];
}

export type MountSpec =
  | { readonly type: "bind"; readonly source: string; readonly target: string; readonly readOnly: boolean }
  | { readonly type: "volume"; readonly volume: string; readonly target: string; readonly readOnly: boolean };

export interface SandboxSpec {
  readonly key: AttemptKey;
  /** Value of the `bulkhead.state` label: the id of the owning state directory. */
  readonly stateId: string;
  /** Unique on the engine; the idempotency key of create. */
  readonly name: string;
  readonly image: string;
  /** OCI runtime by the engine's name for it; null or absent takes its default. */
  readonly runtime?: string | null;
  readonly argv: readonly string[];
  /** File inside the container to use as standard input, or null for /dev/null. */
  readonly stdinPath: string | null;
  /** The whole environment; nothing is inherited beyond what the image declares, which the driver blanks. */
  readonly env: Readonly<Record<string, string>>;
  readonly uid: number;
  readonly workingDir: string;
  readonly mounts: readonly MountSpec[];
  readonly caps: Caps;
  /** The size-limited file system the workspace is on, null where it is on none; absent where that is not known. */
  readonly diskEnforced?: { readonly bytes: number } | null;
  /** What is said of a disk cap that no kernel limit keeps. */
  readonly diskNote?: string;
  /** Hard limit inside the container, a little above the host's own (row A8). */
  readonly innerTimeoutMs: number;
  /** Host directory whose block device the IO caps are put on; null leaves them off. */
  readonly ioDevicePath: string | null;
  /** Extra labels. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Why a sandbox is killed: its time is up, somebody wants it gone, or it wrote more than its cap where the kernel does not stop it. */
export type KillCause = "timeout" | "cancelled" | "disk-full";

export interface OutputChunk {
  readonly stream: "stdout" | "stderr";
  readonly bytes: Buffer;
}

/** Takes output in order. Returning a promise slows the reader down (back-pressure), never loses a byte. */
export type OutputSink = (chunk: OutputChunk) => void | Promise<void>;

export interface SandboxExit {
  readonly exitCode: number;
  /** null where the process ended by itself with code 0 and nothing was wrong. */
  readonly failure: Failure | null;
  readonly use: ResourceUse;
  /** Milliseconds between start and exit, clamped to >= 0 (facts: the engine's own stamps can run backwards). */
  readonly mainMs: number;
}

/** A live look at a running sandbox, from the kernel's files; null where unreadable. */
export interface SandboxSample {
  readonly cpuMs: number | null;
  readonly memoryBytes: number | null;
  readonly pids: number | null;
}

export interface RunningSandbox {
  readonly id: string;
  readonly caps: readonly CapReport[];
  /** Settles once, when the main process has ended and all its output went through the sink. MUST NOT reject. */
  readonly ended: Promise<SandboxExit>;
  sample(): Promise<SandboxSample>;
  /** SIGTERM to the main process. */
  terminate(): Promise<void>;
  /** SIGKILL to everything inside. `because` becomes the failure of `ended`. */
  kill(because: KillCause): Promise<void>;
}

export interface CreatedSandbox {
  readonly id: string;
  /** Attaches to the output, starts, reads the caps back. With `strict` an unenforced cap stops it again. */
  start(sink: OutputSink, options: { strict: boolean }): Promise<Result<RunningSandbox, Failure>>;
  /** Removes the container in whatever state, with its anonymous volumes. Safe to repeat. */
  remove(): Promise<void>;
}

export interface FoundSandbox {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdMs: number;
}

export interface VolumeSpec {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Options of the `local` driver, e.g. type=overlay; absent makes a plain volume. */
  readonly driverOptions?: Readonly<Record<string, string>>;
}

export interface Engine {
  describe(): Promise<EngineInfo>;
  /** Image id (digest) and config, or null where the engine does not have it. */
  inspectImage(image: string): Promise<{ id: string; workingDir: string; user: string } | null>;
  create(spec: SandboxSpec): Promise<Result<CreatedSandbox, Failure>>;
  /** Finds by label, in any state. */
  list(labels: Readonly<Record<string, string>>): Promise<readonly FoundSandbox[]>;
  removeById(id: string): Promise<void>;
  /** MUST check that the volume's options are the asked ones (an existing name returns the old ones silently). */
  createVolume(spec: VolumeSpec): Promise<void>;
  removeVolume(name: string): Promise<void>;
  listVolumes(
    labels: Readonly<Record<string, string>>,
  ): Promise<ReadonlyArray<{ name: string; labels: Readonly<Record<string, string>> }>>;
  /** Host directory of a plain volume's files, where this process can read them; else null. */
  locateVolume(name: string): Promise<string | null>;
  /** Bytes in a plain volume by the engine's own count, null where it tells none. It looks at everything it has: dear, so ask seldom. */
  countVolume(name: string): Promise<number | null>;
  /** Unpacks a tar stream into `path` (must lie in a volume) of a throw-away container that mounts the volume. `rootUid` owns its top. */
  putArchive(volume: string, image: string, tar: NodeJS.ReadableStream, rootUid?: number): Promise<void>;
  /** Streams the content of the volume as tar, through a throw-away container. */
  getArchive(volume: string, image: string): Promise<NodeJS.ReadableStream>;
  close(): Promise<void>;
}
