/**
 * Where things lie in a state directory. Pure string building, shared by everything that reads or writes there:
 *
 *   bulkhead.db            the event log (SQLite)
 *   supervisor.sock/.lock/.log
 *   state-id               16 hex digits: the value of the `bulkhead.state` label
 *   d/<12 hex>/            door directories (short: a socket path may have 107 bytes), mounted at /run/bulkhead
 *   runs/<run>/<task>/<attempt>/   output.log, artifacts/, upper/, work/, merged/
 */
export function databasePath(stateDir: string): string {
  return `${stateDir}/bulkhead.db`;
}

export function supervisorSocketPath(stateDir: string): string {
  return `${stateDir}/supervisor.sock`;
}

export function attemptDir(
  stateDir: string,
  key: { runId: string; taskId: string; attempt: number },
): string {
  return `${stateDir}/runs/${key.runId}/${key.taskId}/${key.attempt}`;
}

export function outputLogPath(
  stateDir: string,
  key: { runId: string; taskId: string; attempt: number },
): string {
  return `${attemptDir(stateDir, key)}/output.log`;
}

export function artifactsDir(
  stateDir: string,
  key: { runId: string; taskId: string; attempt: number },
): string {
  return `${attemptDir(stateDir, key)}/artifacts`;
}

/** Repository's object store in the cache directory, by a hash of its common git directory. */
export function objectStorePath(cacheDir: string, repositoryHash: string): string {
  return `${cacheDir}/stores/${repositoryHash}.git`;
}

export function baseTreesDir(cacheDir: string): string {
  return `${cacheDir}/trees`;
}
