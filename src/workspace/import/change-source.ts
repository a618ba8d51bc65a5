/**
 * What an import found to differ from its snapshot: the list between the readers of hostile trees (overlay, tar) and the writer
 * of the commit. Everything in it has passed the rules of `admission.ts`; content is read later, under its own checks.
 */
import type { Readable } from "node:stream";
import type { AttemptKey } from "../../model/ids.ts";
import type { ResultLimits } from "../../model/run.ts";
import type { Snapshot } from "../workspace.ts";

/** Where a file's bytes are: read when the blob is written (null: no longer what was found), or in the object store already. */
export type FileContent = { readonly open: () => Promise<OpenFile | null> } | { readonly oid: string };

/** An opened file; `read` gives exactly `size` bytes, or fewer where it shrank. */
export interface OpenFile {
  readonly size: number;
  /** The whole content where it is small. */
  readonly bytes?: Buffer;
  readonly stream?: Readable;
  close(): Promise<void>;
}

export type Change =
  | {
      readonly path: Buffer;
      readonly kind: "file";
      readonly mode: "100644" | "100755";
      readonly size: number;
      readonly content: FileContent;
    }
  | { readonly path: Buffer; readonly kind: "symlink"; readonly target: Buffer }
  | { readonly path: Buffer; readonly kind: "deleted" };

/** What was left out because ignore rules name it. A lower bound where the count ran into its budget. */
export interface IgnoredCount {
  files: number;
  bytes: number;
}

/** What both importers are told. */
export interface ImportRequest {
  /** Bulkhead's own object store. */
  readonly gitDir: string;
  readonly snapshot: Snapshot;
  readonly key: AttemptKey;
  readonly limits: ResultLimits;
  /** Commit message; the trailers are added. */
  readonly message: string;
  /** Time of the commit. */
  readonly atMs: number;
  /** Patterns besides the tree's own `.gitignore` files: the repository's `info/exclude`. */
  readonly exclude?: string;
}
