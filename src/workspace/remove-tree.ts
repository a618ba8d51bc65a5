import { runTool } from "./run-tool.ts";

/**
 * Removes a directory with all below it, however deep; a missing one is fine. Through `rm`, since a tree made by an attempt can
 * be deeper than a path may be long, which Node's own removal gives up on.
 */
export async function removeTree(...paths: readonly string[]): Promise<void> {
  if (paths.length > 0) await runTool("rm", ["-rf", "--one-file-system", "--", ...paths]);
}
