import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { mountForWriting, unfitPath, unmount, writableOptions } from "./overlay/mounts.ts";
import { removeTree } from "./remove-tree.ts";
import { runSteps } from "./run-steps.ts";
import type { VolumePort } from "./workspace.ts";

export { probeDiskImage } from "./overlay/disk-image.ts";

export type OverlayVerdict = { readonly usable: true } | { readonly usable: false; readonly why: string };

/**
 * Finds out whether workspaces can be overlays, by trying: the kernel mounts one on the state directory's file system, and the engine
 * takes one as a volume and can look into it. Leaves nothing.
 */
export async function probeOverlay(options: {
  readonly volumes: VolumePort;
  readonly sharesFilesystem: boolean;
  readonly stateDir: string;
  readonly cacheDir: string;
  /** Any image that the engine has. */
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
}): Promise<OverlayVerdict> {
  const { volumes, stateDir, cacheDir, image, labels } = options;
  if (process.geteuid?.() !== 0) return no("bulkhead does not run as root, which mounting takes");
  if (!options.sharesFilesystem) return no("the engine does not see this machine's file system");
  const unfit = unfitPath([stateDir, cacheDir]);
  if (unfit !== null) return no(`${unfit} has characters that mount options cannot carry`);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const directory = await mkdtemp(join(stateDir, "probe-"));
  const place = (name: string) => join(directory, name);
  const volume = `bulkhead-probe-${randomBytes(8).toString("hex")}`;
  try {
    await Promise.all(
      ["lower", "upper", "work", "upper2", "work2", "merged"].map((name) => mkdir(place(name))),
    );
    const layers = [place("lower")];
    await mountForWriting(
      writableOptions({ layers, upper: place("upper"), work: place("work") }),
      place("merged"),
    );
    const o = writableOptions({ layers, upper: place("upper2"), work: place("work2") });
    await volumes.createVolume({
      name: volume,
      labels,
      driverOptions: { type: "overlay", device: "overlay", o },
    });
    // Reading the volume makes the engine mount it.
    const tar = await volumes.getArchive(volume, image);
    for await (const chunk of tar) void chunk;
    return { usable: true };
  } catch (error) {
    return no(error instanceof Error ? error.message : String(error));
  } finally {
    await runSteps([
      () => volumes.removeVolume(volume),
      () => unmount(place("merged")),
      () => removeTree(directory),
    ]);
  }
}

function no(why: string): OverlayVerdict {
  return { usable: false, why };
}
