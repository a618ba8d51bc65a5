import { RunnerError } from "../../model/runner-error.ts";
import { gitFailed, spawnGit } from "../git.ts";
import type { UserRepository } from "./user-repository.ts";

/** Objects up to this many are unpacked; more stay one pack. As `receive.unpackLimit`. */
const UNPACK_LIMIT = 100;

/**
 * Brings objects from bulkhead's store into the user's repository, as a pack through a pipe: no remote, no protocol, no access of one
 * side to the other's files. Objects alone change nothing that a person sees.
 */
export async function transferObjects(
  storeDir: string,
  repository: UserRepository,
  wanted: { readonly oids: readonly string[] } | { readonly tip: string; readonly base: string },
): Promise<void> {
  if ("oids" in wanted && wanted.oids.length === 0) return;
  const flags = ["pack-objects", "--stdout", "--quiet", "--delta-base-offset"];
  const packer = spawnGit(storeDir, "oids" in wanted ? flags : [...flags, "--revs"]);
  let packerErrors = "";
  packer.stderr.on("data", (chunk: Buffer) => {
    if (packerErrors.length < 4096) packerErrors += chunk.toString("utf8");
  });
  packer.stdin.end("oids" in wanted ? `${wanted.oids.join("\n")}\n` : `${wanted.tip}\n^${wanted.base}\n`);
  const isFew = "oids" in wanted && wanted.oids.length <= UNPACK_LIMIT;
  const receiver = repository.git(isFew ? ["unpack-objects", "-q"] : ["index-pack", "--stdin"], {
    input: packer.stdout,
  });
  const [packed, received] = await Promise.all([packer.ended, receiver]);
  if (packed !== 0) throw gitFailed(flags, { exitCode: packed, stderr: packerErrors }, storeDir);
  if (received.exitCode !== 0) {
    throw new RunnerError(
      "git-failed",
      `the objects could not be written to ${repository.top}: ${received.stderr.trim()}`,
      {
        data: { repository: repository.top, exitCode: received.exitCode },
      },
    );
  }
}
