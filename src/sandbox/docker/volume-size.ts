/** How much lies in a plain volume: where its files are ours to read, a caller can count them; else the engine can be asked. */
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { isGone, isUnreachable, statusOf } from "./engine-client.ts";
import type { EngineContext } from "./engine-context.ts";
import { asRunnerError } from "./remove-container.ts";

/** The engine walks all its volumes, images and containers for one answer. */
const COUNT_LIMIT_MS = 120_000;
const CONFLICT = 409;
const ENGINE_ERROR = 500;

export async function locateVolume(
  { client, sharesHost }: EngineContext,
  name: string,
): Promise<string | null> {
  if (!sharesHost) return null;
  try {
    const { Mountpoint } = await client.call("inspect volume", () => client.docker.getVolume(name).inspect());
    await access(Mountpoint, constants.R_OK | constants.X_OK);
    return Mountpoint;
  } catch (error) {
    if (statusOf(error) !== null || isUnreachable(error)) return null;
    throw asRunnerError("inspect volume", name, error);
  }
}

interface DiskUse {
  readonly Volumes?: ReadonlyArray<{
    readonly Name?: string;
    readonly UsageData?: { readonly Size?: number } | null;
  }> | null;
}

/** Requests at the same time share one answer: an engine counts for one of them only and turns the others away. */
const countsByEngine = new WeakMap<EngineContext, Promise<DiskUse>>();

export async function countVolume(context: EngineContext, name: string): Promise<number | null> {
  const { client } = context;
  let counting = countsByEngine.get(context);
  if (counting === undefined) {
    counting = client
      .call("count disk use", () => client.docker.df() as Promise<DiskUse>, COUNT_LIMIT_MS)
      .finally(() => countsByEngine.delete(context));
    countsByEngine.set(context, counting);
  }
  try {
    const found = (await counting).Volumes?.find((volume) => volume.Name === name)?.UsageData?.Size;
    // -1 is the engine's "not known".
    return found === undefined || found < 0 ? null : found;
  } catch (error) {
    // Busy with another program's question, away, or without such a count.
    const status = statusOf(error);
    if (status === CONFLICT || status === ENGINE_ERROR || isGone(error) || isUnreachable(error)) return null;
    throw asRunnerError("count disk use", name, error);
  }
}
