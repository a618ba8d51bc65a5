import { copyFile, link } from "node:fs/promises";

/** Puts the snapshot's manifest into a door directory: a hard link where both lie on one file system, else a copy. */
export async function linkManifest(source: string, target: string): Promise<void> {
  try {
    await link(source, target);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "EXDEV" && code !== "EPERM" && code !== "EMLINK") throw error;
    await copyFile(source, target);
  }
}
