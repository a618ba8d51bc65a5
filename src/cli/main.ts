#!/usr/bin/env node
/** Entry of the command line: builds the context, registers the verbs, maps errors to exit codes. Nothing else. */
import { checkNodeVersion } from "./node-version.ts";

checkNodeVersion(process.versions.node);
const { runCli } = await import("./cli.ts");
process.exitCode = await runCli(process.argv);
