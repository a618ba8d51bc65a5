import { readFile } from "node:fs/promises";
import { z } from "zod";
import { RunnerError } from "../../model/runner-error.ts";

/** What the snapshot gave the attempt at one path. */
export interface ManifestEntry {
  readonly mode: string;
  readonly blob: string;
  /** Brought in from the work tree, not part of the commit. */
  readonly untracked: boolean;
}

const fileSchema = z.object({
  path: z.string().optional(),
  pathBase64: z.string().optional(),
  mode: z.string(),
  blob: z.string(),
  untracked: z.boolean().optional(),
});
const manifestSchema = z.object({ files: z.array(fileSchema) });

/** Reads a snapshot's manifest, by latin1 path. It is bulkhead's own file; one that cannot be read is a fault of the host. */
export async function readManifest(path: string): Promise<Map<string, ManifestEntry>> {
  try {
    const { files } = manifestSchema.parse(JSON.parse(await readFile(path, "utf8")));
    return new Map(
      files.map((file) => {
        const bytes =
          file.pathBase64 === undefined
            ? Buffer.from(file.path ?? "", "utf8")
            : Buffer.from(file.pathBase64, "base64");
        const { mode, blob } = file;
        return [bytes.toString("latin1"), { mode, blob, untracked: file.untracked ?? false }];
      }),
    );
  } catch (cause) {
    throw new RunnerError("workspace-failed", `the snapshot's manifest ${path} cannot be read`, { cause });
  }
}
