/** Writes `schema/*.json` from the zod schemas: `node scripts/generate-schemas.ts`. A test checks that they are up to date. */
import { mkdir, writeFile } from "node:fs/promises";
import { generateSchemas } from "../src/plan/json-schema.ts";

const folder = new URL("../schema/", import.meta.url);
await mkdir(folder, { recursive: true });
for (const [name, text] of Object.entries(generateSchemas())) await writeFile(new URL(name, folder), text);
