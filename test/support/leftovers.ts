import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import Docker from "dockerode";

/** What a state directory still holds on this host: each list must be empty after a run. */
export interface Leftovers {
  readonly containers: readonly string[];
  readonly volumes: readonly string[];
  readonly mounts: readonly string[];
  readonly directories: readonly string[];
}

/** Looks with the engine's API, the kernel's mount table and find(1), not with bulkhead's own eyes. */
export async function findLeftovers(stateDir: string): Promise<Leftovers> {
  const idPath = `${stateDir}/state-id`;
  const label = existsSync(idPath)
    ? `bulkhead.state=${readFileSync(idPath, "utf8").trim()}`
    : "bulkhead.state=none";
  const docker = new Docker({ socketPath: "/var/run/docker.sock" });
  const filters = { label: [label] };
  const containers = await docker.listContainers({ all: true, filters });
  const { Volumes: volumes } = await docker.listVolumes({ filters });
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(stateDir));
  const found = spawnSync(
    "find",
    [
      stateDir,
      "-mindepth",
      "2",
      "(",
      "-name",
      "upper",
      "-o",
      "-name",
      "work",
      "-o",
      "-name",
      "merged",
      "-o",
      "-path",
      "*/d/*",
      ")",
    ],
    { encoding: "utf8" },
  );
  return {
    containers: containers.map((container) => container.Names.join(",")),
    volumes: (volumes ?? []).map((volume) => volume.Name),
    mounts,
    directories: found.stdout.split("\n").filter((line) => line !== ""),
  };
}

/** What `findLeftovers` gives where nothing is left. */
export const NOTHING_LEFT: Leftovers = { containers: [], volumes: [], mounts: [], directories: [] };
