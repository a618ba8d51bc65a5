import {
  type EngineFound,
  type EngineSearch,
  explainSearch,
  type ImageRequest,
  type ImageState,
  type Toolbox,
} from "../../sandbox/engine-setup.ts";
import { type Engine, type EngineInfo, LABELS } from "../../sandbox/sandbox.ts";
import { ensureToolbox } from "../../sandbox/toolbox.ts";
import { probeDiskImage, probeOverlay } from "../../workspace/choose-driver.ts";
import { DEFAULT_IMAGE } from "../commands/setup.ts";
import type { CliContext } from "../context.ts";
import { type DoctorCheck, failed, failedBy, passed, warned } from "./doctor-check.ts";
import type { OpenScratch } from "./measure-caps.ts";
import { PROBE_STATE, type ProbeReport, probeSandbox } from "./probe-sandbox.ts";

/** What doctor needs of the drivers; compose.ts passes the real ones. */
export interface DoctorDeps {
  findEngine(env: CliContext["env"], options: { explicit?: string }): Promise<EngineSearch>;
  checkImage(request: Omit<ImageRequest, "report">): Promise<ImageState>;
  openEngine(found: EngineFound): Promise<Engine> | Engine;
  openScratch(engine: Engine): OpenScratch;
}

export interface EngineReport {
  readonly checks: readonly DoctorCheck[];
  readonly info: EngineInfo | null;
  readonly caps: ProbeReport["caps"];
}

/** From "is there an engine" to a real container in it; each step only where the one before held. */
export async function checkEngine(
  context: CliContext,
  deps: DoctorDeps,
  options: { engine?: string; image: string },
): Promise<EngineReport> {
  const search = await deps.findEngine(
    context.env,
    options.engine === undefined ? {} : { explicit: options.engine },
  );
  const toolbox = await checkToolbox(context);
  if (search.endpoint === null) return { checks: [noEngine(search), toolbox.check], info: null, caps: [] };

  const engine = await deps.openEngine(search);
  try {
    const info = await engine.describe();
    const checks = [
      describeEngine(search, info),
      await checkImageState(search, deps, options.image),
      toolbox.check,
    ];
    const canRun = (await engine.inspectImage(options.image)) !== null && toolbox.found !== null;
    if (!canRun || toolbox.found === null) return { checks, info, caps: [] };
    const probe = await probeSandbox(engine, info, options.image, toolbox.found, context);
    const workspace = await checkWorkspace(engine, info, options.image, context);
    const disk = await checkDiskCap(workspace.state === "ok", context.stateDir);
    return { checks: [...checks, workspace, disk, ...probe.checks], info, caps: probe.caps };
  } catch (cause) {
    const check = failedBy("engine", cause, "see the engine's own log");
    return { checks: [check, toolbox.check], info: null, caps: [] };
  } finally {
    await engine.close();
  }
}

function noEngine(search: EngineSearch): DoctorCheck {
  return failed(
    "engine",
    `none answers\n${explainSearch(search).join("\n")}`,
    "run `bulkhead setup`, or name one with --engine",
  );
}

function describeEngine(found: EngineFound, info: EngineInfo): DoctorCheck {
  const parts = [
    `${info.product} ${info.version} (API ${info.apiVersion}) at ${info.endpoint}, ${found.why}`,
    `storage ${info.storageDriver}, cgroup v${info.cgroupVersion}, runtimes ${info.runtimes.join(" ")}`,
    info.rootless ? "rootless" : "with root",
    ...(info.userBase === 0 ? [] : [`user namespace from uid ${info.userBase}`]),
    info.sharesFilesystem ? "shares this file system" : "elsewhere: workspaces are copied in and out",
  ];
  return passed("engine", parts.join("; "));
}

async function checkImageState(found: EngineFound, deps: DoctorDeps, image: string): Promise<DoctorCheck> {
  const { endpoint, certPath } = found;
  const state = await deps.checkImage({ endpoint, certPath, tag: image, baseImage: null });
  switch (state) {
    case "present":
      return passed("image", image);
    case "outdated":
      return warned(
        "image",
        `${image} was built by another version, or on another base`,
        "run `bulkhead setup`",
      );
    case "missing":
      return failed(
        "image",
        `the engine does not have ${image}`,
        image === DEFAULT_IMAGE
          ? "run `bulkhead setup`"
          : `run \`docker pull ${image}\` or \`docker load\` it`,
      );
  }
}

async function checkToolbox(context: CliContext): Promise<{ check: DoctorCheck; found: Toolbox | null }> {
  try {
    const found = await ensureToolbox({ cacheDir: context.cacheDir });
    return { check: passed("toolbox", found.dir), found };
  } catch (cause) {
    return { check: failedBy("toolbox", cause, "run `bulkhead setup`"), found: null };
  }
}

/** Tries the real thing: mounts an overlay and has the engine mount one. */
async function checkWorkspace(
  engine: Engine,
  info: EngineInfo,
  image: string,
  context: CliContext,
): Promise<DoctorCheck> {
  const { sharesFilesystem } = info;
  const { stateDir, cacheDir } = context;
  const labels = { [LABELS.state]: PROBE_STATE };
  const verdict = await probeOverlay({
    volumes: engine,
    sharesFilesystem,
    stateDir,
    cacheDir,
    image,
    labels,
  });
  if (verdict.usable) return passed("workspace", "overlays work: a snapshot costs milliseconds");
  const hint = "runs work all the same, but each attempt pays for copying the tree";
  return warned("workspace", `snapshots are copies: ${verdict.why}`, hint);
}

/** How `caps.disk` will be kept here, found out by trying. */
async function checkDiskCap(hasOverlay: boolean, stateDir: string): Promise<DoctorCheck> {
  const why = hasOverlay ? await probeDiskImage(stateDir) : "workspaces are copies";
  if (why === null) {
    return passed(
      "disk cap",
      "kept by the kernel: an attempt with caps.disk gets a file system of that size",
    );
  }
  return warned(
    "disk cap",
    `not kept by the kernel (${why}): what an attempt writes is measured every second or so, and it is stopped when over caps.disk`,
    "fine for honest tasks; for others run as root with loop devices and overlays",
  );
}
