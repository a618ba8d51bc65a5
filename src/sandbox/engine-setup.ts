/**
 * The face for getting from a bare machine to an engine with an image: what `bulkhead setup` and `bulkhead doctor` ask for.
 * No I/O; the code that talks to engines is in `docker/`.
 */

/** One place that was looked at, with what came of it in words. */
export interface EngineCandidate {
  readonly endpoint: string;
  /** Where the candidate came from: "--engine", "DOCKER_HOST", "docker context \"colima\"", "the default socket". */
  readonly source: string;
  readonly outcome: string;
}

export interface EngineFound {
  /** `unix:///path`, `tcp://host:port` or `ssh://user@host`. */
  readonly endpoint: string;
  /** Why this one was taken. */
  readonly why: string;
  /** TLS folder of the docker context it came from; null leaves it to DOCKER_CERT_PATH. */
  readonly certPath: string | null;
  readonly version: string;
  readonly apiVersion: string;
  readonly tried: readonly EngineCandidate[];
}

export interface EngineNotFound {
  readonly endpoint: null;
  /** The endpoint the person named, where the search ended at it; null when every usual place was tried. */
  readonly named: string | null;
  readonly tried: readonly EngineCandidate[];
}

export type EngineSearch = EngineFound | EngineNotFound;

/** What was tried, one line each, for a person. */
export function explainSearch(search: EngineSearch): readonly string[] {
  return search.tried.map(({ endpoint, source, outcome }) => `${endpoint || source} (${source}): ${outcome}`);
}

/** Takes one line of progress for the person who waits. */
export type Report = (line: string) => void;

export interface ImageRequest {
  readonly endpoint: string;
  readonly certPath?: string | null;
  /** Name of the image to have, e.g. `bulkhead/agent:latest`. */
  readonly tag: string;
  /** What the image is built on; null takes the default and, where that cannot be had, makes one from Debian packages. */
  readonly baseImage: string | null;
  readonly report: Report;
}

export interface ImageReady {
  readonly tag: string;
  /** The engine's id (digest) of the image. */
  readonly id: string;
  readonly how: "present" | "built";
  /** Value of the label `bulkhead.image.version`: a hash over everything the image is built from. */
  readonly version: string;
}

/** `outdated`: built from other files than this version's. */
export type ImageState = "present" | "outdated" | "missing";

/** Read-only tools mounted into every container at /opt/bulkhead. */
export interface Toolbox {
  readonly dir: string;
  readonly version: string;
}
