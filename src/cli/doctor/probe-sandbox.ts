import { randomBytes } from "node:crypto";
import { z } from "zod";
import { AGENT_UID } from "../../model/agent-user.ts";
import type { CapReport, Caps } from "../../model/caps.ts";
import { formatRunId, taskIdSchema } from "../../model/ids.ts";
import { explainFailure } from "../../observe/explain-failure.ts";
import type { Toolbox } from "../../sandbox/engine-setup.ts";
import { type Engine, type EngineInfo, LABELS, type SandboxSpec } from "../../sandbox/sandbox.ts";
import { formatBytes } from "../../util/bytes.ts";
import { createDeferred } from "../../util/deferred.ts";
import type { CliContext } from "../context.ts";
import { type DoctorCheck, failed, failedBy, passed, warned } from "./doctor-check.ts";

/** A start takes a tenth of a second; a busy machine may need a hundred times that. */
const ANSWER_LIMIT_MS = 20_000;
const MAX_ANSWER_BYTES = 64 * 1024;
/** Stands where runs have the id of their state directory, so that no supervisor takes the probe for its own. */
export const PROBE_STATE = "doctor";

/** Every cap asked for at once, each at a size that any machine has. The workspace cap belongs to a workspace, not to a probe. */
const MIB = 1024 ** 2;
const PROBE_CAPS: Caps = {
  cpus: 0.5,
  memoryBytes: 128 * MIB,
  swapBytes: 0,
  pids: 64,
  openFiles: 256,
  diskBytes: null,
  tmpBytes: 8 * MIB,
  ioReadBytesPerSecond: 64 * MIB,
  ioWriteBytesPerSecond: 64 * MIB,
  ioReadOpsPerSecond: 10_000,
  ioWriteOpsPerSecond: 10_000,
};

/** Runs inside, with the toolbox's Node, and says what it sees. Then waits, so that its caps can be read. */
const INSIDE = `
const os = require("node:os");
const interfaces = Object.keys(os.networkInterfaces());
console.log(JSON.stringify({ uid: process.getuid(), node: process.version, interfaces }));
setInterval(() => {}, 2 ** 30);
`;
const answerSchema = z.object({ uid: z.number(), node: z.string(), interfaces: z.array(z.string()) });

export interface ProbeReport {
  readonly checks: readonly DoctorCheck[];
  readonly caps: readonly CapReport[];
}

/** Starts one tiny real container as attempts are started and reports what holds inside: user, network, tools, each cap. */
export async function probeSandbox(
  engine: Engine,
  info: EngineInfo,
  image: string,
  toolbox: Toolbox,
  context: CliContext,
): Promise<ProbeReport> {
  await removeOldProbes(engine);
  const created = await engine.create(probeSpec(info, image, toolbox, context));
  if (!created.ok) return notStarted(created.error);
  const sandbox = created.value;
  try {
    const answer = createDeferred<string>();
    let said = "";
    const started = await sandbox.start(
      ({ bytes }) => {
        if (said.length < MAX_ANSWER_BYTES) said += bytes.toString("utf8");
        if (said.includes("\n")) answer.resolve(said);
      },
      { strict: false },
    );
    if (!started.ok) return notStarted(started.error);
    const running = started.value;
    const late = setTimeout(() => answer.resolve(said), ANSWER_LIMIT_MS);
    void running.ended.then(() => answer.resolve(said));
    const checks = judgeAnswer(await answer.promise);
    clearTimeout(late);
    await running.kill("cancelled");
    await running.ended;
    return { checks: [...checks, ...running.caps.map(describeCap)], caps: running.caps };
  } catch (cause) {
    return { checks: [failedBy("container", cause, "see the engine's own log")], caps: [] };
  } finally {
    await sandbox.remove();
  }
}

/** A doctor that was killed leaves its container; the next one takes it away. */
async function removeOldProbes(engine: Engine): Promise<void> {
  const oldMs = Date.now() - 10 * ANSWER_LIMIT_MS;
  for (const { id, createdMs } of await engine.list({ [LABELS.state]: PROBE_STATE })) {
    if (createdMs < oldMs) await engine.removeById(id);
  }
}

function probeSpec(info: EngineInfo, image: string, toolbox: Toolbox, context: CliContext): SandboxSpec {
  const suffix = randomBytes(3).toString("hex");
  const runId = formatRunId(new Date().toISOString(), suffix);
  return {
    key: { runId, taskId: taskIdSchema.parse("doctor"), attempt: 1 },
    stateId: PROBE_STATE,
    name: `bulkhead-doctor-${runId}`,
    image,
    argv: ["/opt/bulkhead/bin/node", "-e", INSIDE],
    stdinPath: null,
    env: { PATH: "/opt/bulkhead/bin:/usr/bin:/bin", HOME: "/tmp", LANG: "C.UTF-8" },
    uid: AGENT_UID,
    workingDir: "/",
    // Paths of this machine mean nothing to an engine elsewhere.
    mounts: [{ type: "bind", source: toolbox.dir, target: "/opt/bulkhead", readOnly: true }],
    caps: PROBE_CAPS,
    innerTimeoutMs: 2 * ANSWER_LIMIT_MS,
    ioDevicePath: info.sharesFilesystem ? context.stateDir : null,
    labels: {},
  };
}

function notStarted(failure: Parameters<typeof explainFailure>[0]): ProbeReport {
  const { headline, detail, hint } = explainFailure(failure);
  return { checks: [failed("container", [headline, ...detail].join("\n"), hint)], caps: [] };
}

function judgeAnswer(said: string): readonly DoctorCheck[] {
  const answer = answerSchema.safeParse(parseJson(said));
  if (!answer.success) {
    const excerpt = said.trim() === "" ? "nothing" : JSON.stringify(said.slice(0, 300));
    const hint =
      "the image needs glibc and libstdc++ for the mounted Node; `bulkhead setup` builds one that has them";
    return [failed("container", `a container starts, but Node inside said ${excerpt}`, hint)];
  }
  const { uid, node, interfaces } = answer.data;
  const foreign = interfaces.filter((name) => name !== "lo");
  return [
    uid === AGENT_UID
      ? passed("container", `runs as uid ${uid} with Node ${node}`)
      : failed("container", `runs as uid ${uid} instead of ${AGENT_UID}`, "report this as a bug"),
    foreign.length === 0
      ? passed("network", "no interface but lo inside")
      : failed(
          "network",
          `interfaces inside: ${foreign.join(", ")}`,
          "this engine gives containers a network although none was asked for",
        ),
  ];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function describeCap(report: CapReport): DoctorCheck {
  const name = `cap ${report.cap}`;
  const note = report.note === undefined ? "" : ` (${report.note})`;
  switch (report.state) {
    case "enforced":
      return passed(name, `enforced, read back ${capValue(report)}${note}`);
    case "not-requested":
      return passed(name, "not part of this probe");
    case "not-enforced":
      return warned(
        name,
        `not enforced${note}`,
        "a run with `caps: strict` refuses to start if it asks for this cap",
      );
  }
}

function capValue({ cap, actual }: CapReport): string {
  if (actual === null) return "nothing";
  switch (cap) {
    case "memory":
    case "swap":
    case "tmp":
    case "disk":
      return formatBytes(actual);
    case "ioReadBytes":
    case "ioWriteBytes":
      return `${formatBytes(actual)}/s`;
    case "ioReadOps":
    case "ioWriteOps":
      return `${actual}/s`;
    case "cpus":
    case "pids":
    case "openFiles":
      return String(actual);
  }
}
