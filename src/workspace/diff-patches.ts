import { gitBytes } from "./git.ts";

export interface DiffPatchOptions {
  /** `patch` is what `git apply` takes; `stat` and `names` are for people. */
  readonly format: "patch" | "stat" | "names";
  readonly color?: boolean;
}

const FORMATS: Readonly<Record<DiffPatchOptions["format"], readonly string[]>> = {
  patch: ["-p", "--binary", "--full-index", "-M"],
  // The summary in brackets says what line counts do not: new, gone, changed modes.
  stat: ["--stat=100", "--compact-summary", "-M"],
  names: ["--name-only", "--no-renames"],
};

/**
 * The difference between two commits of the object store, as git writes it, names in their own letters. No driver, filter or external
 * program takes part. Content and names are hostile bytes: a caller that shows them on a terminal has to clean them.
 */
export function diffPatch(
  gitDir: string,
  range: { readonly parent: string; readonly commit: string },
  options: DiffPatchOptions = { format: "patch" },
): Promise<Buffer> {
  return gitBytes(gitDir, [
    "diff-tree",
    "-r",
    "--no-ext-diff",
    "--no-textconv",
    `--color=${options.color ? "always" : "never"}`,
    ...FORMATS[options.format],
    range.parent,
    range.commit,
  ]);
}
