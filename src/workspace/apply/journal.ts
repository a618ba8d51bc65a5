/**
 * The record that makes an apply atomic: written before anything of the user's is touched, and enough to take it back.
 *
 *   preparing → switching → done → undoing → undone
 *
 * `preparing`  nothing of the work tree was touched; what was staged can be thrown away
 * `switching`  each touched file is as before or as after, none in between: they are moved into place whole
 * `undoing`    the same, the other way round
 */
import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { runIdSchema, taskIdSchema } from "../../model/ids.ts";
import type { FileSwitch, Side } from "./file-switch.ts";

const versionSchema = z.object({ mode: z.string(), oid: z.string() }).nullable();
const fileSchema = z.object({
  /** latin1. */
  path: z.string(),
  before: versionSchema,
  after: versionSchema,
  /** The one filter of the person's that may run on it (attribute-filters.ts). */
  filter: z.string().nullable(),
  /** What the file looks like on disk on either side; more than one where it was written again (fingerprint.ts). */
  looks: z.object({ before: z.array(z.string()), after: z.array(z.string()) }),
});
const journalSchema = z.object({
  version: z.literal(2),
  id: z.string().regex(/^[0-9a-f]{16}$/),
  state: z.enum(["preparing", "switching", "done", "undoing", "undone"]),
  repository: z.string(),
  headBefore: z.string(),
  /** Tree that was applied. */
  tree: z.string(),
  /** Whose patches they are; null where the caller keeps no log. */
  run: z.object({ runId: runIdSchema, taskIds: z.array(taskIdSchema) }).nullable(),
  /** Whether the run's log is known to say what became of it. */
  isSettled: z.boolean(),
  /** The process at work: its id, and when it started, so that another of the same id is told apart. */
  process: z.object({ pid: z.number(), startedAt: z.string() }),
  stagingDir: z.string(),
  files: z.array(fileSchema),
});

export type JournalFile = FileSwitch & Readonly<z.infer<typeof fileSchema>>;
export type Journal = Readonly<Omit<z.infer<typeof journalSchema>, "files">> & {
  readonly files: readonly JournalFile[];
};

/** The files with what they look like on one side added. */
export function withLooks(
  files: readonly JournalFile[],
  side: Side,
  prints: ReadonlyMap<string, string>,
): JournalFile[] {
  return files.map((file) => {
    const print = prints.get(file.path);
    if (print === undefined || file.looks[side].includes(print)) return file;
    return { ...file, looks: { ...file.looks, [side]: [...file.looks[side], print] } };
  });
}

/** Names a new apply. */
export function newApplyId(): string {
  return randomBytes(8).toString("hex");
}

/** Writes a journal so that a crash leaves the old one or the new one, on disk before this returns. */
export async function writeJournal(directory: string, journal: Journal): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, `${journal.id}.json`);
  const handle = await open(`${path}.new`, "w", 0o600);
  try {
    await handle.writeFile(JSON.stringify(journal));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${path}.new`, path);
}

/** Reads a journal, or null where there is none of that id, or one of another version of bulkhead. */
export async function readJournal(directory: string, id: string): Promise<Journal | null> {
  if (!/^[0-9a-f]{16}$/.test(id)) return null;
  const text = await readFile(join(directory, `${id}.json`), "utf8").catch(() => null);
  return text === null ? null : (journalSchema.safeParse(JSON.parse(text)).data ?? null);
}

/** Journals of a repository that were interrupted, or are at work. */
export async function findUnfinished(directory: string, repository: string): Promise<Journal[]> {
  const journals = await listJournals(directory, repository);
  return journals.filter(({ state }) => state !== "done" && state !== "undone");
}

/** All journals of a repository, in no order. */
export async function listJournals(directory: string, repository: string): Promise<Journal[]> {
  const names = await readdir(directory).catch(() => []);
  const journals = await Promise.all(
    names.filter((name) => name.endsWith(".json")).map((name) => readJournal(directory, name.slice(0, -5))),
  );
  return journals
    .filter((journal) => journal !== null)
    .filter((journal) => journal.repository === repository);
}

/** This process, as a journal names it. */
export async function thisProcess(): Promise<Journal["process"]> {
  return { pid: process.pid, startedAt: (await startTime(process.pid)) ?? "" };
}

/** Whether the process that a journal names still runs. */
export async function isAtWork({ process: owner }: Journal): Promise<boolean> {
  return (await startTime(owner.pid)) === owner.startedAt;
}

/** Start time in ticks since boot, with the boot's id; null where no such process runs. */
async function startTime(pid: number): Promise<string | null> {
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, "latin1"),
      readFile("/proc/sys/kernel/random/boot_id", "latin1"),
    ]);
    // The command name may hold spaces and brackets; fields are counted from after its last bracket.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? null : `${boot.trim()}:${fields[19]}`;
  } catch {
    return null; // No such process.
  }
}
