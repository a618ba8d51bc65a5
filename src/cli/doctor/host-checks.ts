import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { RunnerError } from "../../model/runner-error.ts";
import { checkPreflight, DEFAULT_PREFLIGHT_LIMITS, type HostMeasures } from "../../policy/preflight.ts";
import { measureHost } from "../../sandbox/host-measures.ts";
import { formatBytes } from "../../util/bytes.ts";
import { readRepositoryState } from "../../workspace/repository-state.ts";
import type { CliContext } from "../context.ts";
import { type DoctorCheck, failed, failedBy, passed, warned } from "./doctor-check.ts";

/** `git merge-tree --write-tree` came with it. */
const GIT_NEEDED = [2, 38] as const;
/** What one attempt may use unless a plan says otherwise; enough for a yes or no about this machine. */
const USUAL_MEMORY_BYTES = 1024 ** 3;

/** What this machine itself must bring: programs, space, memory, and the repository one stands in. */
export async function checkHost(context: CliContext): Promise<readonly DoctorCheck[]> {
  const [git, space, repository] = await Promise.all([
    checkGit(),
    checkSpace(context),
    checkRepository(context.cwd),
  ]);
  return [
    passed("node", `version ${process.versions.node} at ${process.execPath}`),
    git,
    ...space,
    repository,
  ];
}

async function checkGit(): Promise<DoctorCheck> {
  const needed = GIT_NEEDED.join(".");
  const hint = `install git ${needed} or newer`;
  try {
    const { stdout } = await promisify(execFile)("git", ["--version"]);
    const [, major = "0", minor = "0"] = /(\d+)\.(\d+)/.exec(stdout) ?? [];
    const isNew =
      Number(major) > GIT_NEEDED[0] || (Number(major) === GIT_NEEDED[0] && Number(minor) >= GIT_NEEDED[1]);
    const version = stdout.replace("git version", "version").trim();
    return isNew ? passed("git", version) : failed("git", `${version} is too old`, hint);
  } catch (cause) {
    return failedBy("git", cause, hint);
  }
}

async function checkSpace(context: CliContext): Promise<readonly DoctorCheck[]> {
  let measures: HostMeasures;
  try {
    measures = await measureHost([
      { role: "state directory", path: context.stateDir },
      { role: "cache directory", path: context.cacheDir },
    ]);
  } catch (cause) {
    return [failedBy("disk", cause, "check that the state and cache directories can be read")];
  }
  const problems = checkPreflight(
    { ...measures, engine: null, images: [] },
    { ...DEFAULT_PREFLIGHT_LIMITS, slots: 1, memoryBytesPerSlot: USUAL_MEMORY_BYTES },
  );
  const bad = problems.map(({ thing, severity, message, hint }) =>
    severity === "refuse" ? failed(thing, message, hint) : warned(thing, message, hint),
  );
  const isBad = (thing: string) => bad.some(({ name }) => name === thing);
  const good: DoctorCheck[] = [];
  if (!isBad("disk") && !isBad("inodes")) {
    const parts = measures.disks.map(
      (disk) =>
        `${disk.role} ${disk.path}: ${formatBytes(disk.availableBytes)} free, ${disk.usedPercent.toFixed(0)} % used`,
    );
    good.push(passed("disk", parts.join("; ")));
  }
  if (!isBad("memory")) {
    const { memoryAvailableBytes: available, memoryTotalBytes: total } = measures;
    const known =
      available === null || total === null
        ? null
        : `${formatBytes(available)} of ${formatBytes(total)} available`;
    good.push(passed("memory", known ?? "not told by this kernel, not judged"));
  }
  return [...good, ...bad];
}

async function checkRepository(cwd: string): Promise<DoctorCheck> {
  try {
    const state = await readRepositoryState(cwd);
    const where = `${state.path} at ${state.headCommit.slice(0, 12)}`;
    const notes = [
      ...(state.dirty ? ["has changes that are not committed: attempts start from the commit"] : []),
      ...state.warnings,
    ];
    if (notes.length === 0) return passed("repository", where);
    return warned("repository", `${where}: ${notes.join("; ")}`, "fine if that is meant; else commit first");
  } catch (cause) {
    if (cause instanceof RunnerError && cause.code === "not-a-repository") {
      return passed("repository", "not inside one; runs need to be started from a git repository");
    }
    return failedBy("repository", cause, "see `git status`");
  }
}
