import { constants } from "node:fs";
import { lstat, mkdir, open, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { RunnerError } from "../../model/runner-error.ts";
import { projectTemplates } from "../../plan/templates.ts";
import { quotePath } from "../../util/sanitize-text.ts";
import type { CliContext } from "../context.ts";

interface InitOptions {
  readonly force?: boolean;
  readonly json?: boolean;
}

/** Registers `bulkhead init`. */
export function registerInit(program: Command, context: CliContext): void {
  program
    .command("init")
    .description("write bulkhead.yaml and three example tasks to start from")
    .argument("[dir]", "folder to write to", ".")
    .option("--force", "replace files that exist already")
    .option("--json", "print what was written as JSON")
    .addHelpText(
      "after",
      `
Examples:
  $ bulkhead init                write bulkhead.yaml and tasks/ here
  $ bulkhead init path/to/repo   write them there
  $ bulkhead run tasks/          run the example: three shell tasks, no agent needed

Writes nothing where one of its files exists already, unless --force is given.
JSON Schemas for your editor go to tasks/.schema/ (not read as tasks).`,
    )
    .action(async (dir: string, options: InitOptions) => initProject(dir, options, context));
}

async function initProject(dir: string, options: InitOptions, context: CliContext): Promise<void> {
  const root = resolve(context.cwd, dir);
  const templates = projectTemplates();
  await checkFolders(root, templates.keys());
  const existing = (
    await Promise.all(
      [...templates.keys()].map(async (path) => ((await statOf(join(root, path))) ? [path] : [])),
    )
  ).flat();
  if (existing.length > 0 && options.force !== true) {
    throw new RunnerError("usage", `exists already in ${quotePath(root)}: ${existing.join(", ")}`, {
      data: { directory: root, existing },
      hint: "nothing was written; use --force to replace these files, or init another folder",
    });
  }
  for (const [path, text] of templates) await writeNew(join(root, path), text, options.force === true);

  const created = [...templates.keys()].filter((path) => !existing.includes(path));
  if (options.json === true) {
    context.stdout.write(`${JSON.stringify({ directory: root, created, replaced: existing })}\n`);
    return;
  }
  const lines = [
    ...created.map((path) => `wrote ${path}`),
    ...existing.map((path) => `replaced ${path}`),
    "",
    "Next:",
    `  ${dir === "." ? "" : `cd ${quotePath(dir)} && `}bulkhead run tasks/     run the three example tasks`,
    "  edit tasks/*.yaml       your editor completes fields from tasks/.schema/",
    "  edit bulkhead.yaml      define your agents and limits",
  ];
  if ((await statOf(join(root, ".git"))) === null) {
    lines.push(
      "",
      "Note: this is not the top of a git repository, which is where bulkhead.yaml is looked for.",
    );
  }
  context.stdout.write(`${lines.join("\n")}\n`);
}

/** What is not a plain folder on the way (a file, a link to elsewhere) is never written through. */
async function checkFolders(root: string, paths: Iterable<string>): Promise<void> {
  const folders = new Set([...paths].map((path) => dirname(path)).filter((folder) => folder !== "."));
  const onTheWay = new Set(
    [...folders].flatMap((folder) => [dirname(folder), folder]).filter((path) => path !== "."),
  );
  for (const folder of ["", ...onTheWay]) {
    const stat = await statOf(join(root, folder));
    // The folder a person named may be reached through a link; those below it are ours.
    if (stat === null || stat.isDirectory() || (folder === "" && stat.isSymbolicLink())) continue;
    throw new RunnerError("usage", `${quotePath(join(root, folder))} is not a folder`, {
      data: { path: join(root, folder) },
      hint: "move it away, or init another folder",
    });
  }
}

async function statOf(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return null;
    throw error;
  }
}

/** Creates a file that is not there yet; a link in its place is never followed. */
async function writeNew(path: string, text: string, replace: boolean): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  if (replace && (await statOf(path)) !== null) await unlink(path);
  const handle = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o644);
  try {
    await handle.writeFile(text);
  } finally {
    await handle.close();
  }
}
