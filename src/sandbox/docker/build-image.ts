import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type Docker from "dockerode";
import { RunnerError } from "../../model/runner-error.ts";
import type { ImageReady, ImageRequest, ImageState } from "../engine-setup.ts";
import { DEFAULT_BASE, ensureBaseImage } from "./base-image.ts";
import { type BuildContext, readBuildContext } from "./build-context.ts";
import { connectEngine } from "./connect-engine.ts";
import { followProgress } from "./engine-progress.ts";

/** Same depth from `src/` and from `dist/`. */
const PACKAGE_ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** A build step may download packages in silence; past this the engine is taken for stuck. */
const BUILD_STALL_MS = 600_000;

const VERSION_LABEL = "bulkhead.image.version";

/**
 * Makes sure the engine has the agents' image, built from this very version's files; builds it where it is missing or
 * older. Works through the engine's API alone: no docker program, no BuildKit. Safe to repeat; repeating costs one inspect.
 */
export async function ensureImage(request: ImageRequest): Promise<ImageReady> {
  const engine = connectEngine(request.endpoint, process.env, request.certPath ?? null);
  const context = readBuildContext(PACKAGE_ROOT, request.baseImage ?? DEFAULT_BASE);
  const present = await inspectVersion(engine, request.tag);
  if (present !== null && present.version === context.version) {
    request.report(`image: ${request.tag} is up to date`);
    return { tag: request.tag, id: present.id, how: "present", version: context.version };
  }
  const base = await ensureBaseImage(engine, request.baseImage, request.report);
  await build(engine, request, context, base);
  const built = await inspectVersion(engine, request.tag);
  if (built === null || built.version !== context.version) {
    throw new RunnerError("internal", `the engine built ${request.tag} but does not show it`, {
      data: { tag: request.tag, expected: context.version, found: built },
    });
  }
  if (present !== null && present.id !== built.id) await removeUntagged(engine, present.id);
  request.report(`image: ${request.tag} is built on ${base}`);
  return { tag: request.tag, id: built.id, how: "built", version: context.version };
}

/** Whether the engine has the image of this version, without building it. */
export async function checkImage(request: Omit<ImageRequest, "report">): Promise<ImageState> {
  const engine = connectEngine(request.endpoint, process.env, request.certPath ?? null);
  const present = await inspectVersion(engine, request.tag);
  if (present === null) return "missing";
  // An image without the label is the person's own: what is in it is theirs to say.
  if (present.version === null) return "present";
  const context = readBuildContext(PACKAGE_ROOT, request.baseImage ?? DEFAULT_BASE);
  return present.version === context.version ? "present" : "outdated";
}

async function inspectVersion(
  engine: Docker,
  tag: string,
): Promise<{ id: string; version: string | null } | null> {
  try {
    const image = await engine.getImage(tag).inspect();
    // The library's types do not know that an image may have no labels.
    const labels = image.Config.Labels as Partial<Record<string, string>> | null;
    return { id: image.Id, version: labels?.[VERSION_LABEL] ?? null };
  } catch (cause) {
    if ((cause as { statusCode?: unknown }).statusCode === 404) return null;
    throw cause;
  }
}

/** The image the tag pointed to before, unless someone still has a name or a container for it. */
async function removeUntagged(engine: Docker, id: string): Promise<void> {
  const image = engine.getImage(id);
  try {
    if ((await image.inspect()).RepoTags.length === 0) await image.remove();
  } catch {
    // Gone already or in use: it costs disk space until the engine's own prune, nothing else.
  }
}

async function build(
  engine: Docker,
  request: ImageRequest,
  context: BuildContext,
  base: string,
): Promise<void> {
  request.report(`image: building ${request.tag} on ${base}`);
  const stream = await engine.buildImage(Readable.from([await context.tar()]), {
    t: request.tag,
    dockerfile: "Dockerfile.agent",
    buildargs: { BASE_IMAGE: base },
    labels: { [VERSION_LABEL]: context.version },
    rm: true,
    forcerm: true,
  });
  const onLine = (line: string) => {
    if (line.startsWith("Step ") || line.startsWith("STEP ")) request.report(`image: ${line}`);
  };
  const { error, tail } = await followProgress(stream, { stallMs: BUILD_STALL_MS, onLine });
  if (error === null) return;
  throw new RunnerError("image-missing", `building ${request.tag} on ${base} failed: ${error}`, {
    data: { tag: request.tag, base, tail },
    hint: ["the build's last lines:", ...tail].join("\n"),
  });
}
