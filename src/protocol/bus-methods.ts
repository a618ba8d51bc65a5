/**
 * What an attempt can call through its door: name → summary, params, result. The table is the contract: the bus validates with it,
 * `describe` prints it, the client takes its types from it, docs/bus.md is checked against it.
 *
 * Params are strict objects: a field that is not listed is an error, never ignored. None of them says who is calling; the door
 * knows that.
 */
import { z } from "zod";
import { taskIdSchema } from "../model/ids.ts";

/** Raised when a method changes meaning; new methods and new optional fields do not raise it. */
export const BUS_PROTOCOL_VERSION = 1;

export const MAX_MESSAGE_CHARS = 16_384;
export const MAX_PATH_CHARS = 4096;
/** 80 UTF-16 units are at most 240 bytes of UTF-8: below the 255 of every Linux file system. */
export const MAX_ARTIFACT_NAME_CHARS = 80;

export interface MethodSpec {
  readonly summary: string;
  readonly params: z.ZodType;
  readonly result: z.ZodType;
}

/** A text cut in the middle of a character is mended, not refused: agents cut output by length. */
const message = z
  .string()
  .max(MAX_MESSAGE_CHARS)
  .overwrite((text) => text.toWellFormed())
  .describe(`Text for people, at most ${MAX_MESSAGE_CHARS} characters.`);

/** A short text on one line: no control characters, so that it cannot draw on a terminal. */
const label = (maxChars: number) =>
  z
    .string()
    .min(1)
    .max(maxChars)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, "use one line without control characters");

const percent = z.number().min(0).max(100).describe("How far the work is, 0 to 100.");

const repositoryPath = z
  .string()
  .min(1)
  .max(MAX_PATH_CHARS)
  .regex(
    /^(?![\s\S]*(?:^|\/)\.{0,2}(?:\/|$))[^\0\p{Cs}]+$/u,
    "use a plain path from the repository's root, such as src/app.ts: not absolute, no NUL, no empty, . or .. part",
  )
  .describe("Path from the repository's root.");

const artifactName = z
  .string()
  .max(MAX_ARTIFACT_NAME_CHARS)
  .regex(
    /^[\p{L}\p{N}_][\p{L}\p{M}\p{N}._ -]*$/u,
    "use a plain file name: letters, digits, . _ - and space, starting with a letter, digit or _",
  )
  .describe("File name of the artifact; the same name replaces the earlier one.");

const encoding = z.enum(["utf8", "base64"]);
const nothing = z.strictObject({});
const accepted = z.strictObject({ accepted: z.literal(true) });

export const BUS_METHODS = {
  register: {
    summary: "Says which program works here; shown with the attempt.",
    params: z.strictObject({
      name: label(128).describe("Name of the agent program."),
      version: label(64).optional().describe("Its version."),
    }),
    result: accepted,
  },
  status: {
    summary: "Reports what the attempt is doing now.",
    params: z.strictObject({
      state: label(64).describe("One or two words of the caller's choice, such as planning or testing."),
      message: message.optional(),
      percent: percent.optional(),
    }),
    result: accepted,
  },
  progress: {
    summary: 'Short form of status with the state "working".',
    params: z.strictObject({ percent, message: message.optional() }),
    result: accepted,
  },
  log: {
    summary: "Writes one line to the attempt's log.",
    params: z.strictObject({ level: z.enum(["debug", "info", "warn", "error"]).default("info"), message }),
    result: accepted,
  },
  error: {
    summary: "Reports an error; a fatal one makes the attempt fail whatever its exit code.",
    params: z.strictObject({ message, fatal: z.boolean().default(false) }),
    result: accepted,
  },
  get_file: {
    summary: "Reads a file as a task submitted it; the caller's own task means the snapshot it started from.",
    params: z.strictObject({
      task_id: taskIdSchema,
      path: repositoryPath,
      encoding: encoding
        .optional()
        .describe("How to send the content; left out: utf8 where it is valid UTF-8, else base64."),
    }),
    result: z.strictObject({
      content: z.string(),
      encoding,
      blob: z.string().describe("Git blob id of the content."),
      commit: z.string().describe("Commit it was read from."),
      mode: z.string().describe("Git file mode, such as 100644."),
    }),
  },
  put_artifact: {
    summary: "Keeps a file with the attempt's results, apart from the patch.",
    params: z.strictObject({
      name: artifactName,
      content: z.string().describe("The bytes, in the given encoding."),
      encoding: encoding.default("utf8"),
    }),
    result: z.strictObject({ sha256: z.string(), bytes: z.number().int().min(0) }),
  },
  context: {
    summary: "The task's context: the same content as context.json beside the door.",
    params: nothing,
    result: z.unknown(),
  },
  describe: {
    summary: "Lists the methods behind this door with their JSON Schemas, and the error codes.",
    params: nothing,
    result: z.strictObject({
      protocol: z.number().int(),
      methods: z.array(
        z.strictObject({
          name: z.string(),
          summary: z.string(),
          params: z.record(z.string(), z.unknown()),
          result: z.record(z.string(), z.unknown()),
        }),
      ),
      errors: z.array(z.strictObject({ code: z.number().int(), name: z.string(), meaning: z.string() })),
    }),
  },
  ping: {
    summary: "Answers at once.",
    params: nothing,
    result: z.strictObject({ pong: z.literal(true) }),
  },
} as const satisfies Record<string, MethodSpec>;

export type BusMethodName = keyof typeof BUS_METHODS;
export type BusParams<M extends BusMethodName> = z.input<(typeof BUS_METHODS)[M]["params"]>;
export type BusResult<M extends BusMethodName> = z.output<(typeof BUS_METHODS)[M]["result"]>;
