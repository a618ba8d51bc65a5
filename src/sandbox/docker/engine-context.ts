import type { CapName } from "../../model/caps.ts";
import type { Logger } from "../../util/logger.ts";
import type { Semaphore } from "../../util/semaphore.ts";
import type { Hierarchy } from "./cgroup-files.ts";
import type { ImageFacts } from "./create-body.ts";
import type { EngineClient } from "./engine-client.ts";
import type { ExitWatch } from "./exit-watch.ts";

/** What the pieces of one engine share. */
export interface EngineContext {
  readonly client: EngineClient;
  readonly logger: Logger;
  readonly exits: ExitWatch;
  /** Bounds creates and starts: past two per core an engine only gets slower. */
  readonly gate: Semaphore;
  readonly product: "docker" | "podman";
  readonly hierarchies: readonly Hierarchy[];
  /** True where the engine runs on this host: its paths and processes are ours. */
  readonly sharesHost: boolean;
  /** True where a cgroup of our own can be put above each container and removed again. */
  readonly hasOwnGroups: boolean;
  readonly maxUserProcesses: number | null;
  /** How long the engine may be unreachable before its containers count as lost. */
  readonly lostAfterMs: number;
  /** Caps this engine was seen to enforce, for containers that end before their files can be read. */
  readonly provenCaps: Set<CapName>;
  findImage(image: string): Promise<ImageFacts | null>;
}
