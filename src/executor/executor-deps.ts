/** What the local executor is made of, and the small state an attempt carries along. Types only. */
import type { CallerBus } from "../bus/bus.ts";
import type { OpenDoor } from "../door/door.ts";
import type { AttemptKey } from "../model/ids.ts";
import type { RunSettings } from "../model/run.ts";
import type { Engine, EngineInfo, RunningSandbox } from "../sandbox/sandbox.ts";
import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import type { ObjectStore, WorkspaceDriver } from "../workspace/workspace.ts";
import type { AttemptListener } from "./executor.ts";
import type { Repositories } from "./repositories.ts";

/** Bounded, redacted output of one attempt: to disk, and line-ready text to whoever watches. */
export interface OutputPort {
  write(stream: "stdout" | "stderr", bytes: Buffer): void | Promise<void>;
  close(): Promise<void>;
}

export interface LocalExecutorDeps {
  readonly stateDir: string;
  readonly stateId: string;
  readonly cacheDir: string;
  readonly engine: Engine;
  readonly engineInfo: EngineInfo;
  readonly repositories: Repositories;
  /** The driver for a run: forced by its settings or chosen by a probe. Throws RunnerError where a forced one cannot serve. */
  driverFor(settings: RunSettings, store: ObjectStore, image: string): Promise<ChosenDriver>;
  readonly openDoor: OpenDoor;
  busFor(key: AttemptKey, context: () => unknown): CallerBus;
  openOutput(
    path: string,
    secrets: readonly string[],
    onText: AttemptListener["output"],
  ): Promise<OutputPort>;
  readonly toolboxDir: string;
  readonly hostsFile: string;
  /** A fresh name for a door directory, 12 hex digits. */
  newDoorId(): string;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface ChosenDriver {
  readonly driver: WorkspaceDriver;
  /** Why the faster driver does not serve here; null where it does, or the person chose. */
  readonly note: string | null;
}

/** Whether an attempt is to stop, and what there is to stop. */
export interface Control {
  because: "timeout" | "cancelled" | null;
  running: RunningSandbox | null;
}

/** How to take back one thing that an attempt made on the host; run in reverse order. */
export interface UndoStep {
  readonly what: string;
  run(): Promise<void>;
}
