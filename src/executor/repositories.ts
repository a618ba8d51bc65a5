import type { RunSettings } from "../model/run.ts";
import type { ObjectStore } from "../workspace/workspace.ts";

/** Object stores of the repositories that runs work on, opened and filled once, shared by all attempts. */
export interface Repositories {
  /** The store with the run's base commit in it, `history` commits deep. */
  ready(settings: RunSettings, history: number): Promise<ObjectStore>;
  store(repository: string): Promise<ObjectStore>;
}

/** Makes the cache. A failed opening or import is forgotten, so that a retry tries again. */
export function createRepositories(open: (repository: string) => Promise<ObjectStore>): Repositories {
  const stores = new Map<string, Promise<ObjectStore>>();
  const imports = new Map<string, Promise<void>>();
  const once = <T>(cache: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> => {
    const known = cache.get(key);
    if (known !== undefined) return known;
    const made = make();
    cache.set(key, made);
    made.catch(() => cache.delete(key));
    return made;
  };
  const store = (repository: string): Promise<ObjectStore> =>
    once(stores, repository, () => open(repository));
  return {
    store,
    async ready(settings, history) {
      const opened = await store(settings.repository);
      const key = `${settings.repository}\0${settings.baseCommit}\0${history}`;
      await once(imports, key, () => opened.importCommit(settings.repository, settings.baseCommit, history));
      return opened;
    },
  };
}
