import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type Docker from "dockerode";
import { RunnerError } from "../../model/runner-error.ts";
import type { Report } from "../engine-setup.ts";
import { canInstallPackages, findProgram, installDebianPackages, runSystem } from "./debian-packages.ts";
import { followProgress } from "./engine-progress.ts";

export const DEFAULT_BASE = "debian:bookworm-slim";
/** The stand-in made from packages where the default cannot be pulled. */
const MADE_BASE = "bulkhead/base:bookworm";
const SUITE = "bookworm";
/** What images/provision.sh would otherwise install, so that building on it needs no network. */
const MADE_PACKAGES = "ca-certificates,git,socat,curl,jq,python3,libstdc++6";

const PULL_STALL_MS = 30_000;
const IMPORT_STALL_MS = 300_000;

/**
 * The base to build on, made available on the engine: the asked one if it is there or can be pulled. Only the default has a
 * stand-in: a base that the person named is what they want, or an error.
 */
export async function ensureBaseImage(engine: Docker, asked: string | null, report: Report): Promise<string> {
  const base = asked ?? DEFAULT_BASE;
  if (await hasImage(engine, base)) return base;
  if (asked === null && (await hasImage(engine, MADE_BASE))) return MADE_BASE;
  report(`image: pulling ${base}`);
  const problem = await pull(engine, base);
  if (problem === null) return base;
  if (asked !== null) {
    throw new RunnerError(
      "image-missing",
      `the base image ${base} is not on the engine and cannot be pulled`,
      {
        data: { base, problem },
        hint: `${problem}\nload it with \`docker load\`, or name another with --base`,
      },
    );
  }
  report(`image: cannot pull ${base} (${problem}); making a base from Debian packages instead`);
  await makeBase(engine, base, report);
  return MADE_BASE;
}

export async function hasImage(engine: Docker, name: string): Promise<boolean> {
  try {
    await engine.getImage(name).inspect();
    return true;
  } catch (cause) {
    if ((cause as { statusCode?: unknown }).statusCode === 404) return false;
    throw cause;
  }
}

/** null when the image came, else why not. */
async function pull(engine: Docker, name: string): Promise<string | null> {
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(), PULL_STALL_MS);
  try {
    const stream = await engine.pull(name, { abortSignal: stop.signal });
    clearTimeout(late);
    return (await followProgress(stream, { stallMs: PULL_STALL_MS })).error;
  } catch (cause) {
    if (stop.signal.aborted) return `no answer within ${PULL_STALL_MS / 1000} s`;
    // The library puts the status in front of the engine's own words.
    const said = cause instanceof Error ? cause.message : String(cause);
    return firstLine(said.replace(/^\(HTTP code \d+\) [^-]* - /, "")).trim();
  } finally {
    clearTimeout(late);
  }
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

/** A minimal Debian from packages, imported as one layer. Takes about half a minute. */
async function makeBase(engine: Docker, wanted: string, report: Report): Promise<void> {
  const mmdebstrap = await needMmdebstrap(wanted, report);
  const folder = await mkdtemp(join(tmpdir(), "bulkhead-base-"));
  try {
    const tar = join(folder, "base.tar");
    report("image: collecting Debian packages (about half a minute)");
    const argv = ["--variant=minbase", "--quiet", `--include=${MADE_PACKAGES}`];
    const lean = ["man", "doc", "info", "locale"].map(
      (part) => `--dpkgopt=path-exclude=/usr/share/${part}/*`,
    );
    const outcome = await runSystem(mmdebstrap, [...argv, ...lean, SUITE, tar]);
    if (outcome.exitCode !== 0) {
      throw new RunnerError("image-missing", `mmdebstrap ended with ${outcome.exitCode}`, {
        data: { tail: outcome.tail },
        hint: outcome.tail.join("\n"),
      });
    }
    await importBase(engine, tar, report);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function needMmdebstrap(wanted: string, report: Report): Promise<string> {
  const present = findProgram("mmdebstrap");
  if (present !== null && process.getuid?.() === 0) return present;
  if (!canInstallPackages()) {
    throw new RunnerError(
      "image-missing",
      `${wanted} cannot be pulled, and making a base needs root on Debian`,
      {
        data: { wanted },
        hint: "load a base with `docker load` and name it with --base, or run setup once as root",
      },
    );
  }
  report("image: installing mmdebstrap");
  const outcome = await installDebianPackages(["mmdebstrap"]);
  const installed = findProgram("mmdebstrap");
  if (installed !== null) return installed;
  throw new RunnerError("image-missing", "installing mmdebstrap failed", {
    data: { exitCode: outcome.exitCode, tail: outcome.tail },
    hint: outcome.tail.join("\n"),
  });
}

async function importBase(engine: Docker, tar: string, report: Report): Promise<void> {
  report(`image: importing ${MADE_BASE}`);
  const [repo, tag] = MADE_BASE.split(":");
  const stream = await engine.importImage(createReadStream(tar), { repo, tag, changes: ['CMD ["sh"]'] });
  const { error } = await followProgress(stream, { stallMs: IMPORT_STALL_MS });
  if (error === null) return;
  throw new RunnerError("image-missing", `the engine refused the base image: ${firstLine(error)}`, {
    data: { tag: MADE_BASE },
    hint: "check the engine's free disk space",
  });
}
