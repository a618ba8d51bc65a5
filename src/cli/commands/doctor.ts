import type { Command } from "commander";
import { sanitizeForTerminal } from "../../util/sanitize-text.ts";
import { type CliContext, EXIT } from "../context.ts";
import type { DoctorCheck } from "../doctor/doctor-check.ts";
import { checkEngine, type DoctorDeps } from "../doctor/engine-checks.ts";
import { checkHost } from "../doctor/host-checks.ts";
import { measureCaps } from "../doctor/measure-caps.ts";
import { renderCaps } from "../doctor/render-caps.ts";
import { DEFAULT_IMAGE } from "./setup.ts";

interface DoctorOptions {
  readonly engine?: string;
  readonly image: string;
  readonly json?: boolean;
  readonly caps?: boolean;
}

/** `bulkhead doctor`: looks at everything a run needs and says what to do about what is missing. Changes nothing but the cache. */
export function registerDoctor(program: Command, context: CliContext, deps: DoctorDeps): void {
  program
    .command("doctor")
    .description("Check this machine: programs, engine, image, caps, disk, memory, repository.")
    .option("--engine <endpoint>", "engine to look at: unix:///path.sock, tcp://host:port, ssh://user@host")
    .option("--image <tag>", "image to try", DEFAULT_IMAGE)
    .option("--caps", "measure each cap with real containers instead (about ten seconds)")
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      "\nEnds with 0 if a run can start here, else 3.\n\nExamples:\n  bulkhead doctor\n  bulkhead doctor --json\n  bulkhead doctor --caps",
    )
    .action(async (options: DoctorOptions) => {
      process.exitCode = options.caps
        ? await measure(context, deps, options)
        : await examine(context, deps, options);
    });
}

/** Ends with 3 where a cap does not hold, or there is nothing to measure with. */
async function measure(context: CliContext, deps: DoctorDeps, options: DoctorOptions): Promise<number> {
  const explicit = options.engine === undefined ? {} : { explicit: options.engine };
  const found = await deps.findEngine(context.env, explicit);
  if (found.endpoint === null) {
    context.stderr.write("no container engine answers: `bulkhead doctor` says where it looked\n");
    return EXIT.host;
  }
  const engine = await deps.openEngine(found);
  try {
    const rows = await measureCaps(engine, options.image, deps.openScratch(engine), context);
    const isHeld = rows.length > 0 && rows.every(({ verdict }) => verdict !== "not held");
    if (options.json) context.stdout.write(`${JSON.stringify({ ok: isHeld, caps: rows }, null, 2)}\n`);
    else if (rows.length > 0) context.stdout.write(renderCaps(rows));
    else {
      const image = sanitizeForTerminal(options.image);
      context.stderr.write(
        `the engine does not have ${image}: run \`bulkhead setup\`, or name one with --image\n`,
      );
    }
    return isHeld ? EXIT.done : EXIT.host;
  } finally {
    await engine.close();
  }
}

async function examine(context: CliContext, deps: DoctorDeps, options: DoctorOptions): Promise<number> {
  const host = await checkHost(context);
  const engine = await checkEngine(context, deps, options);
  const checks = [...host, ...engine.checks];
  const isFit = checks.every(({ state }) => state !== "fail");
  if (options.json) {
    const body = { ok: isFit, checks, engine: engine.info, caps: engine.caps };
    context.stdout.write(`${JSON.stringify(body, null, 2)}\n`);
  } else {
    for (const check of checks) context.stdout.write(renderCheck(check));
    context.stdout.write(`${summary(checks)}\n`);
  }
  return isFit ? EXIT.done : EXIT.host;
}

/** Words, not colours, carry the state: the output is often pasted into an issue. */
function renderCheck({ name, state, detail, hint }: DoctorCheck): string {
  const indent = " ".repeat(6);
  const lines = [...detail.split("\n"), ...(hint === undefined ? [] : [`-> ${hint}`])].map((line) =>
    sanitizeForTerminal(line),
  );
  const [first = "", ...rest] = lines;
  return [`${state.padEnd(4)}  ${name}: ${first}`, ...rest.map((line) => `${indent}${line}`), ""].join("\n");
}

function summary(checks: readonly DoctorCheck[]): string {
  const count = (state: DoctorCheck["state"]) => checks.filter((check) => check.state === state).length;
  const [bad, doubtful] = [count("fail"), count("warn")];
  if (bad > 0) return `not fit: ${bad} of ${checks.length} checks failed`;
  return doubtful > 0 ? `fit, with ${doubtful} of ${checks.length} checks to look at` : "fit";
}
