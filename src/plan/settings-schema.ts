import { z } from "zod";
import { capsModeSchema } from "../model/caps.ts";
import type { FailureReason } from "../model/failure.ts";
import {
  decimal,
  duration,
  field,
  listOf,
  MAX_ARGUMENT_BYTES,
  oneOf,
  orList,
  pattern,
  size,
  sizeOrNone,
  text,
  wholeNumber,
} from "./fields.ts";

/** Longest time limit. Timers of the runtime end at 24.8 days. */
const MAX_TIMEOUT_MS = 7 * 86_400_000;
const MIB = 1024 ** 2;

/** Reasons a person may ask to have retried. Faults of the host are retried anyway; the others cannot come out differently. */
const RETRYABLE = [
  "exit",
  "timeout",
  "oom",
  "pids",
  "disk-full",
  "agent-error",
  "result-refused",
] as const satisfies readonly FailureReason[];

const cpus = field(
  z
    .union([
      z.number(),
      z
        .string()
        .regex(/^\d+(\.\d+)?$/)
        .transform(Number),
    ])
    .pipe(z.number().min(0.01).max(4096)),
  { noun: "a number of cores", allowed: "e.g. 0.5 or 2 (at least 0.01)" },
  "Cores the attempt may use at once, e.g. 0.5. Default 1.",
);

const io = field(
  z.strictObject({
    read_bytes: sizeOrNone("Bytes read from disk per second, or none.", 1).optional(),
    write_bytes: sizeOrNone("Bytes written to disk per second, or none.", 1).optional(),
    read_ops: wholeNumber("Read operations per second.", 1, 1_000_000_000).optional(),
    write_ops: wholeNumber("Write operations per second.", 1, 1_000_000_000).optional(),
  }),
  { noun: "a map of disk rates", allowed: "read_bytes, write_bytes, read_ops, write_ops, or none" },
  "Caps on disk traffic, per second. Default none.",
);

/** `caps:` as a person writes it. */
export const capsSchema = field(
  z.strictObject({
    cpus: cpus.optional(),
    memory: size(
      "Memory, e.g. 512m or 2GiB; the attempt is killed above it. Default 1GiB.",
      6 * MIB,
    ).optional(),
    swap: size("Swap on top of memory; 0 for none. Default 0.", 0).optional(),
    pids: wholeNumber("Processes and threads at once. Default 256.", 2, 4_194_304).optional(),
    open_files: wholeNumber("Open files per process. Default 4096.", 16, 1_048_576).optional(),
    disk: sizeOrNone("What the attempt may write to its workspace, or none. Default none.", MIB).optional(),
    tmp: size("Size of /tmp and of HOME, each; counts against memory. Default 256MiB.", MIB).optional(),
    io: field(
      z.union([z.literal("none").transform(() => null), io]),
      { noun: "a map of disk rates", allowed: "read_bytes, write_bytes, read_ops, write_ops, or none" },
      "Caps on disk traffic, per second, or none. Default none.",
    ).optional(),
  }),
  { noun: "a map of caps", allowed: "e.g. {cpus: 2, memory: 2GiB}" },
  "Resource limits of the task. What is left out comes from the defaults.",
);

const retryMap = field(
  z.strictObject({
    max: wholeNumber("Retries after the first attempt. Default 2.", 0, 100).optional(),
    base: duration("Wait before the first retry. Default 1s.", 0, MAX_TIMEOUT_MS).optional(),
    factor: decimal("Each wait is this many times the one before. Default 1.5.", 1, 10).optional(),
    max_delay: duration("Longest wait. Default 60s.", 0, MAX_TIMEOUT_MS).optional(),
    jitter: decimal("Share of the wait that is random. Default 0.5.", 0, 1).optional(),
    on: listOf(
      "Failures to retry besides those of the host (which always are). Default none.",
      "a list of failures",
      oneOf("A reason to retry.", "a failure that can be retried", RETRYABLE),
    ).optional(),
  }),
  {
    noun: "a retry policy",
    allowed: "a number of retries, or a map with max, base, factor, max_delay, jitter, on",
  },
  "How often and when to try again.",
);

export const retriesSchema = field(
  z.union([wholeNumber("Retries after the first attempt.", 0, 100).transform((max) => ({ max })), retryMap]),
  {
    noun: "a retry policy",
    allowed: "a number of retries from 0 to 100, or a map with max, base, factor, max_delay, jitter, on",
  },
  "Retries after the first attempt: a number, or a map.",
);

export const filesSchema = field(
  z.strictObject({
    include: listOf(
      "Only these files go into the workspace. Default: all tracked files.",
      "a list of patterns",
      pattern("Files to include, in gitignore syntax."),
    ).optional(),
    exclude: listOf(
      "These files stay out of the workspace.",
      "a list of patterns",
      pattern("Files to leave out, in gitignore syntax."),
    ).optional(),
    tests: oneOf(
      "`matching` brings in only the test files whose path holds one of the keywords, with their shared fixtures. Default all.",
      "a choice of tests",
      ["all", "matching"],
    ).optional(),
    keywords: listOf(
      "Words that pick test files where tests is `matching`.",
      "a list of words",
      text("A word of a path.", { max: 128 }),
    ).optional(),
    history: wholeNumber(
      "Commits of history inside: 1 is the base commit alone, 0 all of it. Default 1.",
      0,
      1_000_000,
    ).optional(),
    extra: listOf(
      "Ignored or untracked files of the working tree to bring in, e.g. .env. Default none.",
      "a list of patterns",
      pattern("Files to bring in, in gitignore syntax."),
    ).optional(),
  }),
  { noun: "a map of file rules", allowed: "e.g. {include: [src/], exclude: ['*.md']}" },
  "Which files of the commit the task sees.",
);

const shellCommand = text("A shell command.", { noun: "a shell command", max: MAX_ARGUMENT_BYTES });

export const protectSchema = listOf(
  "Files whose change turns the patch into a proposal that needs a person; gitignore syntax. Added to those of the defaults.",
  "a list of patterns",
  pattern("Protected files, in gitignore syntax."),
);

export const verifySchema = listOf(
  "Commands that prove the patch.",
  "a list of shell commands",
  shellCommand,
);

export const imageSchema = field(
  z
    .string()
    .max(512)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/),
  { noun: "an image name", allowed: "e.g. debian:13 or registry.example/team/agent@sha256:…" },
  "Container image. Default bulkhead/agent:latest.",
);

/** Engines name their runtimes freely; with dots and slashes also the containerd forms and paths are covered. */
export const runtimeSchema = field(
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/),
  { noun: "a runtime name", allowed: "a name the engine has, e.g. runc, crun, runsc or kata" },
  "OCI runtime that containers are run with, e.g. runc, crun, runsc, kata. Default: the engine's.",
);

export const agentNameSchema = field(
  z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/),
  { noun: "an agent name", allowed: "1 to 64 of A-Z a-z 0-9 _ - , starting with a letter" },
  "Name of an agent defined under agents.",
);

export const timeoutSchema = duration(
  "Hard time limit of one attempt, e.g. 90s, 30m, 1h30m, or seconds. Default 30m.",
  1000,
  MAX_TIMEOUT_MS,
);

export const capsMode = field(
  capsModeSchema,
  { noun: "a caps mode", allowed: orList(capsModeSchema.options) },
  "strict refuses to start where a requested cap is not enforced, report only says so. Default report.",
);

export const schemaReference = text("JSON Schema of this file, for editors.", { max: 4096 });
