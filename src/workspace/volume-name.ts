import type { AttemptKey } from "../model/ids.ts";

/** Name of an attempt's volume: unique, since a run id never comes twice. */
export function volumeName({ key }: { readonly key: AttemptKey }): string {
  return `bulkhead-${key.runId}-${key.taskId}-${key.attempt}`;
}
