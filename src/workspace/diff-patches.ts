import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gitBytes } from "./git.ts";
import { parsePath, pathKey, pathOfKey } from "./path-bytes.ts";

export interface DiffPatchOptions {
  /** `patch` is what `git apply` takes; `stat` and `names` are for people. */
  readonly format: "patch" | "stat" | "names";
  readonly color?: boolean;
  /** Paths, as patches name them, that come before all others. */
  readonly first?: readonly string[];
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
export async function diffPatch(
  gitDir: string,
  range: { readonly parent: string; readonly commit: string },
  options: DiffPatchOptions = { format: "patch" },
): Promise<Buffer> {
  const diff = (order: readonly string[]): Promise<Buffer> =>
    gitBytes(gitDir, [
      "diff-tree",
      "-r",
      "--no-ext-diff",
      "--no-textconv",
      `--color=${options.color ? "always" : "never"}`,
      ...FORMATS[options.format],
      ...order,
      range.parent,
      range.commit,
    ]);
  const first = options.first ?? [];
  if (first.length === 0) return diff([]);
  // Git takes the order from a file alone.
  const directory = await mkdtemp(join(tmpdir(), "bulkhead-order-"));
  try {
    const orderFile = join(directory, "order");
    await writeFile(orderFile, orderOf(first));
    return await diff([`-O${orderFile}`]);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Lines of an order file: patterns, each of which names one path alone. A line feed cannot stand in one. */
function orderOf(paths: readonly string[]): Buffer {
  const lines = paths.map((path) => {
    const pattern = pathKey(parsePath(path))
      .replace(/[\\*?[]/g, "\\$&")
      .replaceAll("\n", "?");
    return pattern.startsWith("#") ? `\\${pattern}` : pattern;
  });
  return pathOfKey(`${lines.join("\n")}\n`);
}
