/**
 * What one container uses, kept so that peaks and refusals survive the container.
 *
 * Theory of operation. The engine deletes the container's group some ten milliseconds after its end, and the counters
 * with it. Memory, CPU and process peaks therefore come from a parent group of our own, which the kernel charges too and
 * which stays until we remove it (`own-group`). What the kernel counts only in the container's own group is read on a slow
 * tick, when v2 notifies a change, and before a kill. Where no group of ours can be made, all of it comes from those looks.
 * LIMITATION: block IO (and on v1 the count of OOM kills) of the last second before the end can be missing.
 */
import { type FSWatcher, watch } from "node:fs";
import type { Caps, ResourceUse } from "../../model/caps.ts";
import type { SandboxSample } from "../sandbox.ts";
import { type CgroupDirs, type Counters, readCounters } from "./cgroup-files.ts";

const TICK_MS = 1_000;

export interface UsageMeter {
  sample(): SandboxSample;
  /** Reads the group's counters now, for what they are still worth. */
  look(): void;
  /** Stops watching and adds it up. Call once, after the end. */
  finish(): ResourceUse;
}

/** `own` is the container's group (null: never seen), `parent` ours above it (null: none). */
export function createUsageMeter(own: CgroupDirs | null, parent: CgroupDirs | null, caps: Caps): UsageMeter {
  let best: Counters = own === null ? NOTHING : readCounters(own);
  const look = () => {
    if (own !== null) best = largest(best, readCounters(own));
  };
  const watchers = own === null ? [] : watchCounters(own, look);
  const timer = own === null ? undefined : setInterval(look, TICK_MS).unref();
  return {
    sample() {
      if (own === null) return { cpuMs: null, memoryBytes: null, pids: null };
      const now = readCounters(own);
      best = largest(best, now);
      return { cpuMs: now.cpuMs, memoryBytes: now.memoryBytes, pids: now.pids };
    },
    look,
    finish() {
      clearInterval(timer);
      for (const watcher of watchers) watcher.close();
      look();
      const all = parent === null ? best : largest(best, readCounters(parent));
      return {
        cpuMs: all.cpuMs,
        // Our group above is charged for the engine's start helper too, which can show a little over the cap.
        peakMemoryBytes:
          all.peakMemoryBytes === null ? null : Math.min(all.peakMemoryBytes, caps.memoryBytes),
        ...forksOf(all, caps.pids),
        oomKills: all.oomKills,
        ioReadBytes: all.ioReadBytes,
        ioWriteBytes: all.ioWriteBytes,
      };
    },
  };
}

/** A peak above the cap is the trace of a refused fork, see `own-group`; how many there were is then at least one. */
function forksOf(all: Counters, pidsCap: number): Pick<ResourceUse, "peakPids" | "pidsDenied"> {
  if (all.peakPids === null || all.peakPids <= pidsCap)
    return { peakPids: all.peakPids, pidsDenied: all.pidsDenied };
  return { peakPids: pidsCap, pidsDenied: Math.max(1, all.pidsDenied ?? 0) };
}

const NOTHING: Counters = {
  cpuMs: null,
  memoryBytes: null,
  peakMemoryBytes: null,
  pids: null,
  peakPids: null,
  pidsDenied: null,
  oomKills: null,
  ioReadBytes: null,
  ioWriteBytes: null,
};

/** All counters only grow, and the parent's include the container's: the larger one is the later or fuller one. */
export function largest(a: Counters, b: Counters): Counters {
  const larger = (x: number | null, y: number | null) => (x === null ? y : y === null ? x : Math.max(x, y));
  return {
    cpuMs: larger(a.cpuMs, b.cpuMs),
    memoryBytes: larger(a.memoryBytes, b.memoryBytes),
    peakMemoryBytes: larger(
      larger(a.peakMemoryBytes, b.peakMemoryBytes),
      larger(a.memoryBytes, b.memoryBytes),
    ),
    pids: larger(a.pids, b.pids),
    peakPids: larger(larger(a.peakPids, b.peakPids), larger(a.pids, b.pids)),
    pidsDenied: larger(a.pidsDenied, b.pidsDenied),
    oomKills: larger(a.oomKills, b.oomKills),
    ioReadBytes: larger(a.ioReadBytes, b.ioReadBytes),
    ioWriteBytes: larger(a.ioWriteBytes, b.ioWriteBytes),
  };
}

/** The kernel notifies readers of these files through inotify when their content changes. */
function watchCounters(own: CgroupDirs, onChange: () => void): FSWatcher[] {
  const pids = own("pids");
  const memory = own("memory");
  const files = [
    ...(pids === null ? [] : [`${pids.dir}/pids.events`]),
    ...(memory?.version === 2 ? [`${memory.dir}/memory.events`] : []),
  ];
  return files.flatMap((file) => {
    try {
      const watcher = watch(file, { persistent: false }, onChange);
      watcher.on("error", () => watcher.close());
      return [watcher];
    } catch {
      // Ended already, or the inotify limit is reached: the tick and the last look remain.
      return [];
    }
  });
}
