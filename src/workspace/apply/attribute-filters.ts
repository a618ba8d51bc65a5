/**
 * Which filter of the person's a touched path goes through.
 *
 * Trust: a patch may bring a `.gitattributes` that names any driver in the person's config, and whatever it names would be run on content
 * of the same patch. So the driver of each path is looked up once, before anything is changed, from the attributes they have
 * themselves. Content of that path is only ever handed to that driver; a path they have no filter for is written as the patch has it.
 */
import { pathOfKey } from "../path-bytes.ts";
import type { FileSwitch } from "./file-switch.ts";
import type { UserRepository } from "./user-repository.ts";

/** The drivers that the work tree's attributes name for the paths now, where one has a program. */
export async function readFilters(
  repository: UserRepository,
  switches: readonly FileSwitch[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  if (repository.filters.length === 0 || switches.length === 0) return found;
  const input = nulEnded(switches.map(({ path }) => path));
  const output = await repository.gitBytes(["check-attr", "-z", "--stdin", "filter"], { input });
  const fields = output.toString("latin1").split("\0");
  for (let at = 0; at + 2 < fields.length; at += 3) {
    const driver = Buffer.from(fields[at + 2] ?? "", "latin1").toString("utf8");
    if (repository.filters.includes(driver)) found.set(fields[at] ?? "", driver);
  }
  return found;
}

/** Switches by the one driver that may run on them; null for none. */
export function byFilter<T extends { readonly filter: string | null }>(
  switches: readonly T[],
): ReadonlyMap<string | null, readonly T[]> {
  return Map.groupBy(switches, ({ filter }) => filter);
}

/** A list of paths as git's `-z` commands read it. */
export function nulEnded(paths: readonly string[]): Buffer {
  return Buffer.concat(paths.flatMap((path) => [pathOfKey(path), Buffer.of(0)]));
}
