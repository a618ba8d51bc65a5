import { gitBytes } from "./git.ts";

export interface DiffPatchOptions {
  /** `patch` is what `git apply` takes; `stat` and `names` are for people. */
  readonly format: "patch" | "stat" | "names";
  readonly color?: boolean;
}

const FORMATS: Readonly<Record<DiffPatchOptions["format"], readonly string[]>> = {
  patch: ["-p", "--binary", "--full-index"],
  stat: ["--stat=100", "--summary"],
  names: ["--name-only"],
};

/**
 * The difference between two commits of the object store, as git writes it. No driver, filter or external program takes part.
 * Content and (in patches) quoted names are hostile bytes: a caller that shows them on a terminal has to clean them.
 */
export function diffPatch(
  gitDir: string,
  range: { readonly parent: string; readonly commit: string },
  options: DiffPatchOptions = { format: "patch" },
): Promise<Buffer> {
  return gitBytes(gitDir, [
    "-c",
    "core.quotePath=true",
    "diff-tree",
    "-r",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    `--color=${options.color ? "always" : "never"}`,
    ...FORMATS[options.format],
    range.parent,
    range.commit,
  ]);
}
