import { readFile } from "node:fs/promises";
import { RunnerError } from "../../model/runner-error.ts";
import { runTool } from "../run-tool.ts";

/** Paths that mount options can carry: `,` ends an option, `:` a layer, and escaping either does not work everywhere. */
const PLAIN_PATH = /^\/[A-Za-z0-9/_.-]*$/;
/** The kernel takes one page of options. */
const MAX_OPTION_BYTES = 4_000;

/** Options of every overlay here, whatever the kernel's own defaults are: a changed file is a whole file in the upper directory. */
const WHOLE_FILES = "redirect_dir=nofollow,metacopy=off";

/** The first path that an overlay's options cannot carry, or null. */
export function unfitPath(paths: readonly string[]): string | null {
  return paths.find((path) => !PLAIN_PATH.test(path)) ?? null;
}

/**
 * Options of an attempt's writable overlay.
 *
 * `volatile` leaves out the flush that overlayfs does for each file it copies up (2,000 touched files: 1.5 s with, 0.13 s without).
 * The price: after a crash of the host the upper directory cannot be trusted, and the kernel refuses to mount it writable a second
 * time. Both suit: an attempt that loses its host is run again from the start, and one workspace is mounted by one container.
 */
export function writableOptions(overlay: {
  readonly layers: readonly string[];
  readonly upper: string;
  readonly work: string;
}): string {
  const { layers, upper, work } = overlay;
  return checked(
    [...layers, upper, work],
    `lowerdir=${layers.join(":")},upperdir=${upper},workdir=${work},${WHOLE_FILES},volatile,nosuid,nodev`,
  );
}

/** Mounts what the attempt left over its layers, for reading: no link is followed, nothing can be run or written. */
export async function mountForReading(layers: readonly string[], target: string): Promise<void> {
  const options = checked(
    layers,
    `ro,nosuid,nodev,noexec,nosymfollow,lowerdir=${layers.join(":")},${WHOLE_FILES}`,
  );
  await runTool("mount", ["-t", "overlay", "overlay", "-o", options, target]);
}

/** Mounts an overlay for writing in this process's own view, to see whether the kernel does it. */
export async function mountForWriting(options: string, target: string): Promise<void> {
  await runTool("mount", ["-t", "overlay", "overlay", "-o", options, target]);
}

/** Unmounts whatever is mounted at `target`; nothing is fine. */
export async function unmount(target: string): Promise<void> {
  if (!(await isMounted(target))) return;
  try {
    await runTool("umount", [target]);
  } catch {
    // Busy: taken out of sight now, gone when its last user goes. Where that fails too, the error is this one.
    await runTool("umount", ["--lazy", target]);
  }
}

async function isMounted(target: string): Promise<boolean> {
  const table = await readFile("/proc/self/mountinfo", "utf8");
  // Only plain paths are ever mounted on, so the table's escapes do not matter.
  return table.includes(` ${target} `);
}

function checked(paths: readonly string[], options: string): string {
  const unfit = unfitPath(paths);
  if (unfit !== null) {
    throw new RunnerError("workspace-failed", `an overlay cannot be mounted on ${unfit}`, {
      data: { path: unfit },
      hint: "Paths may hold A-Z a-z 0-9 / _ . - only. Choose another state or cache directory, or the copy driver.",
    });
  }
  if (options.length > MAX_OPTION_BYTES) {
    throw new RunnerError(
      "workspace-failed",
      `the mount options of an overlay have ${options.length} bytes, the limit is ${MAX_OPTION_BYTES}`,
      { data: { options }, hint: "Choose a state and cache directory with shorter paths." },
    );
  }
  return options;
}
