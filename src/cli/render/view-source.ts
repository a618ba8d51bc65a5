import type { LoggedEvent } from "../../model/event.ts";
import type { TaskId } from "../../model/ids.ts";

/** A piece of live output: redacted, otherwise as the task wrote it, so hostile to a terminal. */
export interface OutputPiece {
  readonly type: "output";
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

/** A look at a running attempt's counters. */
export interface SamplePiece {
  readonly type: "sample";
  readonly taskId: TaskId;
  readonly cpuMs: number | null;
  readonly memoryBytes: number | null;
  readonly pids: number | null;
  readonly atMs: number;
}

export type ViewItem = LoggedEvent | OutputPiece | SamplePiece;

/** What a view of a run is fed with: ends when the run has settled or the watcher lets go. */
export interface ViewSource {
  readonly events: AsyncIterable<ViewItem>;
}
