import type { AttemptKey } from "./ids.ts";

/** Git file modes that a patch may hold. Gitlinks (160000) are never taken from an attempt. */
export type FileMode = "100644" | "100755" | "120000";

/**
 * One path that differs between an attempt's start and its end. `path` is the name itself where it is UTF-8; else (and where it starts
 * with a double quote) it stands in double quotes with odd bytes in octal, as git quotes it. It may hold control characters.
 */
export interface FileChange {
  readonly path: string;
  readonly kind: "added" | "modified" | "deleted" | "mode-changed" | "type-changed";
  readonly mode: FileMode | null;
  /** Lines; null for binary content. */
  readonly insertions: number | null;
  readonly deletions: number | null;
}

/** What an attempt submits: a commit in bulkhead's own object store whose parent is the snapshot it started from. */
export interface Patch {
  readonly attempt: AttemptKey;
  /** Commit id in the object store. */
  readonly commit: string;
  /** Commit the attempt started from (base commit, or base merged with the parents' patches). */
  readonly parent: string;
  readonly tree: string;
  readonly files: readonly FileChange[];
  /** Files left out because the repository's ignore rules name them. */
  readonly ignored: { readonly files: number; readonly bytes: number };
  /** True where nothing changed: a valid result, it releases dependents. */
  readonly empty: boolean;
  /** Secrets that the patch brings in, as far as they were recognised. Absent where there are none. */
  readonly secrets?: readonly PatchSecret[];
  /** What of it is on the risk list (`policy/risks.ts`), by rule. Absent where nothing is. */
  readonly risks?: readonly PatchRisk[];
}

/** Files of a patch that fall under one rule of the risk list. */
export interface PatchRisk {
  readonly rule: string;
  readonly files: number;
  /** The first of them; as many as a person would read. */
  readonly paths: readonly string[];
}

/** Where a patch brings in what looks like a secret. Never says what it is. */
export interface PatchSecret {
  readonly path: string;
  /** The rule it fell under, such as `github-token`; `not-scanned` where a file was too large to look through. */
  readonly rule: string;
  /** Line of the new file, from 1; null where it is the path itself, or nothing was looked at. */
  readonly line: number | null;
}
