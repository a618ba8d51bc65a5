/**
 * The face of `workspace/`: from the user's repository to a snapshot an attempt works in, and from what the attempt left to a
 * patch. Interfaces only; drivers are in `overlay/` and `copy/`.
 *
 * Trust: the user's repository is only ever read. What comes out of a workspace is hostile until read by `readPatch`, which
 * runs no git command on the attempt's tree (docs/adr, "patch import").
 */
import type { Failure } from "../model/failure.ts";
import type { AttemptKey, RunId, TaskId } from "../model/ids.ts";
import type { Patch } from "../model/patch.ts";
import type { ResultLimits } from "../model/run.ts";
import type { FileFilter } from "../model/task.ts";
import type { Result } from "../util/result.ts";

/** What the workspace needs of an engine; the executor passes the sandbox engine, which has this shape. */
export interface VolumePort {
  createVolume(spec: {
    name: string;
    labels: Readonly<Record<string, string>>;
    driverOptions?: Readonly<Record<string, string>>;
  }): Promise<void>;
  removeVolume(name: string): Promise<void>;
  /** `rootUid` becomes owner of the volume's top directory, which an archive's own `./` entry does not reach on every engine. */
  putArchive(volume: string, image: string, tar: NodeJS.ReadableStream, rootUid?: number): Promise<void>;
  getArchive(volume: string, image: string): Promise<NodeJS.ReadableStream>;
}

/** The user's repository at one moment. */
export interface RepositoryState {
  readonly path: string;
  readonly headCommit: string;
  readonly ref: string | null;
  readonly objectFormat: "sha1" | "sha256";
  readonly dirty: boolean;
  readonly warnings: readonly string[];
}

/** A starting point: a commit in the object store plus the directories that hold its files, shared by many attempts. */
export interface Snapshot {
  /** Commit the attempt starts from, as recorded in the patch's parent. */
  readonly commit: string;
  /** HEAD inside the container: `commit` itself, or a filtered stand-in where files were left out. */
  readonly insideHead: string;
  /** Immutable directories, topmost first; the last is the base tree. All owned by the agent's uid. */
  readonly layers: readonly string[];
  /** Path of `workspace_manifest.json` for this snapshot: every file with mode and blob hash (row A3). */
  readonly manifestPath: string;
  /** For people: patterns for extra files that match nothing, submodules that could not be brought in. */
  readonly warnings?: readonly string[];
}

export interface Workspace {
  readonly driver: "overlay" | "copy";
  /** Engine volume to mount at /workspace. */
  readonly volume: string;
  /** Host directory on the device that the attempt writes to, for IO caps; null where the engine is elsewhere. */
  readonly devicePath: string | null;
  /** Whether `diskBytes` is kept by the kernel: `hard`, or `none` where it is only checked afterwards. */
  readonly diskCap?: "hard" | "none";
  /** Why the kernel does not keep a cap that was asked for. */
  readonly diskNote?: string;
  /** Reads what changed into a commit. Only after the container is gone. */
  readPatch(limits: ResultLimits): Promise<Result<Patch, Failure>>;
  /** Removes volume, upper directory and mounts. Safe to repeat; goes on after a failing step and reports all. */
  release(): Promise<void>;
}

/** Makes workspaces; one per object store. */
export interface WorkspaceDriver {
  readonly name: "overlay" | "copy";
  open(request: OpenRequest): Promise<Workspace>;
}

export interface OpenRequest {
  readonly key: AttemptKey;
  readonly snapshot: Snapshot;
  /** Private directory of this attempt in the state directory; exists, mode 0700. */
  readonly attemptDir: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string;
  readonly diskBytes: number | null;
  /** Commit message of the patch. */
  readonly message: string;
  /** Patterns of the person's own `info/exclude`: new files that match stay out of the patch. */
  readonly exclude?: string;
}

/** Bulkhead's own bare object store for one user repository, under the cache directory. */
export interface ObjectStore {
  readonly gitDir: string;
  /** Brings the commit in from the user's repository (read only), `history` commits deep (0: all). */
  importCommit(repository: string, commit: string, history: number): Promise<void>;
  /**
   * Makes a commit of the work tree as it is, on top of `headCommit`: tracked changes and untracked, not ignored files. Null where
   * nothing differs. The commit is known to `importCommit`. Throws `repository-refused` in the middle of a merge.
   */
  commitWorkTree(repository: string, headCommit: string): Promise<WorkTreeCommit | null>;
  /** The shared snapshot of base commit + parents' patches under a filter. Concurrent callers share one build. */
  snapshot(request: SnapshotRequest): Promise<Result<Snapshot, Failure>>;
  /** Content of a path in a commit, or null where there is none or it is not a regular file. */
  readFile(commit: string, path: string): Promise<{ content: Buffer; blob: string; mode: string } | null>;
}

/** The work tree's uncommitted changes as a commit in the object store. */
export interface WorkTreeCommit {
  readonly commit: string;
  /** For people: what of the work tree could not go in. */
  readonly warnings: readonly string[];
}

export interface SnapshotRequest {
  readonly baseCommit: string;
  readonly parents: ReadonlyArray<{ readonly taskId: TaskId; readonly commit: string }>;
  readonly filter: FileFilter;
  /** Top of the person's work tree, for `filter.extra`. */
  readonly repository: string;
  /** Extra files are read once per run; without it, at every call. */
  readonly runId?: RunId;
}
