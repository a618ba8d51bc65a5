import { err, ok, type Result } from "../util/result.ts";

/** How much an attempt may still store, by name; the same name replaces and is counted once. */
export interface ArtifactAllowance {
  /** Counts the artifact at once (calls overlap); `giveBack` undoes it where storing did not happen. */
  reserve(name: string, bytes: number): Result<{ giveBack(): void }, string>;
}

/** Makes an allowance of `maxCount` names and `maxBytes` in all. */
export function createArtifactAllowance(maxCount: number, maxBytes: number): ArtifactAllowance {
  const sizes = new Map<string, number>();
  let total = 0;
  const set = (name: string, bytes: number | undefined) => {
    total += (bytes ?? 0) - (sizes.get(name) ?? 0);
    if (bytes === undefined) sizes.delete(name);
    else sizes.set(name, bytes);
  };
  return {
    reserve(name, bytes) {
      const before = sizes.get(name);
      if (before === undefined && sizes.size >= maxCount) {
        return err(`the attempt has stored ${sizes.size} artifacts, the limit is ${maxCount}`);
      }
      const after = total - (before ?? 0) + bytes;
      if (after > maxBytes) {
        return err(`with this one the artifacts would have ${after} bytes, the limit is ${maxBytes} in all`);
      }
      set(name, bytes);
      return ok({ giveBack: () => set(name, before) });
    },
  };
}
