import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { Command } from "commander";
import Docker from "dockerode";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { registerDoctor } from "../../../src/cli/commands/doctor.ts";
import { registerSetup } from "../../../src/cli/commands/setup.ts";
import { openScratch } from "../../../src/cli/compose-engine.ts";
import type { CliContext } from "../../../src/cli/context.ts";
import { CAP_NAMES } from "../../../src/model/caps.ts";
import { checkImage, ensureImage } from "../../../src/sandbox/docker/build-image.ts";
import { createDockerEngine } from "../../../src/sandbox/docker/docker-engine.ts";
import { findEngine } from "../../../src/sandbox/docker/find-engine.ts";
import type { Toolbox } from "../../../src/sandbox/engine-setup.ts";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const tag = `bulkhead-test/doctor:${randomBytes(4).toString("hex")}`;
let docker: Docker;
let endpoint = "";
const baseImage = "bulkhead/agent:latest";
let root = "";

beforeAll(async () => {
  const found = await findEngine(process.env);
  if (found.endpoint === null) throw new Error(`these tests need an engine: ${JSON.stringify(found.tried)}`);
  endpoint = found.endpoint;
  docker = new Docker({ socketPath: endpoint.replace("unix://", "") });
  // An image with the tools makes a base that needs no network; setup has built this one.
  expect(
    await checkImage({ endpoint, tag: baseImage, baseImage: null }),
    "run `npm run setup` first",
  ).not.toBe("missing");
});
afterAll(async () => {
  // Not there where only some of these tests ran.
  if ((await docker.listImages()).some(({ RepoTags }) => RepoTags?.includes(tag))) {
    await docker.getImage(tag).remove({ force: true });
  }
});
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "bh-doctor-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** Runs one command line with the real drivers; answers what it printed and its exit code. */
async function run(...argv: string[]): Promise<{ stdout: string; stderr: string; exitCode: number }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const context: CliContext = {
    cwd: root,
    env: process.env,
    stateDir: join(root, "state"),
    cacheDir: join(root, "cache"),
    stdout,
    stderr,
    stdin: new PassThrough(),
  };
  const program = new Command("bulkhead").exitOverride();
  const mustNotStart = () => Promise.reject(new Error("no engine may be started here"));
  registerSetup(program, context, { findEngine, startEngine: mustNotStart, ensureImage });
  registerDoctor(program, context, {
    findEngine,
    checkImage,
    openEngine: async (found) => {
      await mkdir(context.stateDir, { recursive: true });
      return createDockerEngine({ endpoint: found.endpoint, logger: quiet, probeDir: context.stateDir });
    },
    openScratch: (engine) => (request) => openScratch(engine, request),
  });
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    await program.parseAsync(["node", "bulkhead", ...argv]);
    stdout.end();
    stderr.end();
    return { stdout: await text(stdout), stderr: await text(stderr), exitCode: process.exitCode };
  } finally {
    process.exitCode = before;
  }
}

const doctorSchema = z.object({
  ok: z.boolean(),
  checks: z.array(
    z.object({
      name: z.string(),
      state: z.enum(["ok", "warn", "fail"]),
      detail: z.string(),
      hint: z.string().optional(),
    }),
  ),
  engine: z.object({ endpoint: z.string(), storageDriver: z.string(), cgroupVersion: z.number() }).nullable(),
  caps: z.array(z.object({ cap: z.string(), state: z.string(), actual: z.number().nullable() })),
});

const capsSchema = z.object({
  ok: z.boolean(),
  caps: z.array(
    z.object({
      cap: z.enum(CAP_NAMES),
      asked: z.number(),
      measured: z.number().nullable(),
      state: z.string(),
      verdict: z.string(),
      why: z.string(),
    }),
  ),
});

describe("doctor --caps", () => {
  test("measures every cap on this machine, and each holds", async () => {
    const { stdout, exitCode } = await run("doctor", "--caps", "--json", "--image", baseImage);
    const report = capsSchema.parse(JSON.parse(stdout));
    const verdicts = report.caps.map(({ cap, state, verdict, why, measured }) => ({
      cap,
      state,
      verdict: verdict === "held" ? verdict : `${verdict}: ${why} (${measured})`,
    }));
    // Swap is asked to be none, which the memory's figure proves: nothing went anywhere else.
    const caps: string[] = CAP_NAMES.filter((cap) => cap !== "swap");
    expect(verdicts.sort((a, b) => caps.indexOf(a.cap) - caps.indexOf(b.cap))).toEqual(
      caps.map((cap) => ({ cap, state: "enforced", verdict: "held" })),
    );
    expect([report.ok, exitCode]).toEqual([true, 0]);
    const measured = new Map(report.caps.map((one) => [one.cap, one.measured ?? Number.NaN]));
    expect(measured.get("cpus")).toBeCloseTo(0.25, 1);
    expect(Math.abs((measured.get("ioWriteBytes") ?? 0) / (8 * 1024 ** 2) - 1)).toBeLessThan(0.15);
    expect(measured.get("disk")).toBeGreaterThan(30 * 1024 ** 2);
    expect(await readdir(join(root, "state"))).toEqual([]);
  });

  test("without the image says so and ends with 3", async () => {
    const { stderr, exitCode } = await run("doctor", "--caps", "--image", "bulkhead-test/never:1");
    expect(stderr).toContain("does not have bulkhead-test/never:1");
    expect(exitCode).toBe(3);
  });
});

describe("setup, then doctor", () => {
  test("setup makes image and toolbox, says so, and is quick the second time", async () => {
    const first = await run("setup", "--image", tag, "--base", baseImage);
    expect(first.stdout).toContain(`engine: ${endpoint}`);
    expect(first.stdout).toContain(`image: ${tag} is built on ${baseImage}`);
    expect(first.stdout).toContain("ready: ");
    const second = await run("setup", "--image", tag, "--base", baseImage, "--json");
    const told = JSON.parse(second.stdout) as { engine: string; image: { how: string }; toolbox: Toolbox };
    expect(told).toMatchObject({ engine: endpoint, image: { how: "present" } });
    expect(await readdir(join(told.toolbox.dir, "bin"))).toEqual(["bulkhead-bus", "node"]);
    expect(second.stderr).toContain("is up to date");
  });

  test("doctor looks inside a real container: user, network, tools and every cap read back", async () => {
    const { stdout, exitCode } = await run("doctor", "--json", "--image", tag);
    const report = doctorSchema.parse(JSON.parse(stdout));
    const states = new Map(report.checks.map(({ name, state }) => [name, state]));
    for (const name of [
      "node",
      "git",
      "disk",
      "memory",
      "engine",
      "toolbox",
      "container",
      "network",
      "cap memory",
      "cap pids",
    ]) {
      expect([name, states.get(name)]).toEqual([name, "ok"]);
    }
    expect(states.has("workspace")).toBe(true);
    expect(["ok", "warn"]).toContain(states.get("disk cap"));
    // Built on a base of our choice, which the default setup would not use.
    expect(states.get("image")).toBe("warn");
    expect(report.caps.map(({ cap }) => cap)).toEqual([...CAP_NAMES]);
    expect(report.caps.find(({ cap }) => cap === "memory")).toMatchObject({
      state: "enforced",
      actual: 128 * 1024 ** 2,
    });
    expect(report.engine?.endpoint).toBe(endpoint);
    expect([report.ok, exitCode]).toEqual([true, 0]);
    const left = await docker.listContainers({ all: true, filters: { label: ["bulkhead.state=doctor"] } });
    expect(left.filter(({ Image }) => Image === tag)).toEqual([]);
    expect(await readdir(join(root, "state"))).toEqual([]);
  });

  test("doctor without the image fails with the next step and exit code 3", async () => {
    const { stdout, exitCode } = await run("doctor", "--image", "bulkhead-test/never:1");
    expect(exitCode).toBe(3);
    expect(stdout).toMatch(/^fail {2}image: the engine does not have bulkhead-test\/never:1\n {6}-> /m);
    expect(stdout).toMatch(/^not fit: 1 of \d+ checks failed$/m);
  });

  test("a named engine that does not answer: doctor says where it looked, setup starts nothing in its place", async () => {
    const dead = `unix://${root}/dead.sock`;
    const doctor = await run("doctor", "--json", "--engine", dead);
    expect(doctorSchema.parse(JSON.parse(doctor.stdout))).toMatchObject({
      ok: false,
      engine: null,
      caps: [],
    });
    expect(doctor.stdout).toContain("no such socket");
    expect(doctor.exitCode).toBe(3);
    await expect(run("setup", "--engine", dead)).rejects.toMatchObject({
      code: "engine-unreachable",
      message: expect.stringContaining(dead) as string,
    });
  });
});
