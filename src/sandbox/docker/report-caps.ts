import { CAP_NAMES, type CapName, type CapReport } from "../../model/caps.ts";
import { type CapReading, type CapReadings, judgeCaps } from "../../policy/caps.ts";
import type { SandboxSpec } from "../sandbox.ts";
import type { EngineContext } from "./engine-context.ts";
import { type readGroupCaps, readProcessCaps } from "./read-caps.ts";

export interface CapsView {
  /** First process of the container; null where it could not be found. */
  readonly pid: number | null;
  /** The readings of the container's group; null where it could not be found. */
  readonly group: ReturnType<typeof readGroupCaps> | null;
  readonly hasEnded: boolean;
}

const UNREADABLE = "the engine's kernel files are not readable from here (remote engine or missing rights)";

/** Reads the caps back and judges them; says why where there is nothing to read. */
export async function reportCaps(
  context: EngineContext,
  spec: SandboxSpec,
  view: CapsView,
): Promise<readonly CapReport[]> {
  const readings = {
    ...everyCap({ actual: null }),
    ...view.group,
    ...(await readProcessCaps(view.pid, spec)),
  };
  const reports = judgeCaps(spec.caps, readings);
  for (const { cap, state } of reports) if (state === "enforced") context.provenCaps.add(cap);
  return reports.map((report) =>
    report.actual === null ? explain(context, view, readings, report) : report,
  );
}

/**
 * A container of a millisecond is gone before its files are read. Its cap counts as enforced only where this engine was
 * seen to enforce the same cap before; the note says that it was not read for this one.
 */
function explain(
  context: EngineContext,
  view: CapsView,
  readings: CapReadings,
  report: CapReport,
): CapReport {
  if (report.state !== "not-enforced" || readings[report.cap].note !== undefined) return report;
  if (!view.hasEnded) return { ...report, note: UNREADABLE };
  if (!context.provenCaps.has(report.cap)) {
    return { ...report, note: "it ended before the cap could be read back" };
  }
  return {
    ...report,
    state: "enforced",
    note: "it ended before the cap could be read back; this engine enforced it for an earlier container",
  };
}

function everyCap(reading: CapReading): CapReadings {
  return Object.fromEntries(CAP_NAMES.map((cap) => [cap, reading])) as Record<CapName, CapReading>;
}
