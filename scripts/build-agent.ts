/** Bundles `bulkhead-bus` into one file for the image: `node scripts/build-agent.ts [OUTFILE]`. */
import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const DEFAULT_OUT_FILE = resolve(ROOT, "dist/toolbox/bulkhead-bus.mjs");
/** It is started for every call from a shell, so it must load in no time. */
const MAX_BYTES = 50_000;

/** Builds the bundle and answers its path and size; throws where it has grown over its limit. */
export async function buildAgent(outFile = DEFAULT_OUT_FILE): Promise<{ outFile: string; bytes: number }> {
  await mkdir(dirname(outFile), { recursive: true });
  await build({
    entryPoints: [resolve(ROOT, "src/agent/bulkhead-bus.ts")],
    outfile: outFile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    minify: true,
    logLevel: "warning",
  });
  const { size } = await stat(outFile);
  if (size > MAX_BYTES) {
    throw new Error(
      `${outFile} has ${size} bytes, the limit is ${MAX_BYTES}: a library has come into the bundle`,
    );
  }
  return { outFile, bytes: size };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { outFile, bytes } = await buildAgent(process.argv[2]);
  console.log(`${outFile} ${bytes} bytes`);
}
