/**
 * A `SandboxSpec` as the engine's create request. Pure, so that each hardening option is one line that a test can see.
 * Trust: what runs inside is hostile; nothing here may depend on the image being friendly (its ENV, ENTRYPOINT,
 * VOLUME and HEALTHCHECK are all overridden).
 */
import type { ContainerCreateOptions, HostConfig, MountSettings } from "dockerode";
import { LABELS, type MountSpec, type SandboxSpec } from "../sandbox.ts";

const MIB = 1024 * 1024;
const KILL_AFTER_SECONDS = 5;
const SHM_BYTES = 16 * MIB;
/** One inode per this many bytes of tmpfs, at least a few thousand: inodes of a tmpfs are kernel memory. */
const TMP_BYTES_PER_INODE = 4_096;

export interface ImageFacts {
  readonly id: string;
  readonly env: readonly string[];
  readonly volumes: readonly string[];
}

export interface CreateFacts {
  readonly image: ImageFacts;
  /** Value of the engine's `seccomp=` option; null leaves its default profile. */
  readonly seccomp: string | null;
  readonly product: "docker" | "podman";
  /** Block device (`/dev/...`) the IO caps go on, or null. */
  readonly ioDevice: string | null;
  /** Own parent cgroup, or null for the engine's default. */
  readonly cgroupParent: string | null;
  /** The cap, or more where a group above enforces it. */
  readonly pidsLimit: number;
  /** The host's hard limit on processes per user; Podman fails without an explicit value at or below it. */
  readonly maxUserProcesses: number | null;
}

/** Builds the body. The process is `init → [timeout] → [sh <file] → argv`. */
export function buildCreateBody(spec: SandboxSpec, facts: CreateFacts): ContainerCreateOptions {
  return {
    name: spec.name,
    Image: facts.image.id,
    Hostname: "sandbox",
    User: `${spec.uid}:${spec.uid}`,
    // Entrypoint rather than Cmd: an image's ENTRYPOINT would otherwise run in front of the command.
    Entrypoint: [...commandLine(spec)],
    Cmd: [],
    Env: environment(spec.env, facts.image.env),
    WorkingDir: spec.workingDir,
    NetworkDisabled: true,
    OpenStdin: false,
    Tty: false,
    AttachStdin: false,
    AttachStdout: true,
    AttachStderr: true,
    StopSignal: "SIGTERM",
    StopTimeout: KILL_AFTER_SECONDS,
    Healthcheck: { Test: ["NONE"] },
    Labels: sandboxLabels(spec),
    HostConfig: hostConfig(spec, facts),
  };
}

/** The labels of the face, then the caller's own (which may not replace them). */
export function sandboxLabels(spec: SandboxSpec): Record<string, string> {
  return {
    ...spec.labels,
    [LABELS.state]: spec.stateId,
    [LABELS.run]: spec.key.runId,
    [LABELS.task]: spec.key.taskId,
    [LABELS.attempt]: String(spec.key.attempt),
  };
}

/** Short options of timeout(1): coreutils and busybox both know them. */
export function commandLine(spec: SandboxSpec): readonly string[] {
  const fed =
    spec.stdinPath === null ? spec.argv : ["sh", "-c", 'exec "$@" < "$0"', spec.stdinPath, ...spec.argv];
  if (spec.innerTimeoutMs <= 0) return fed;
  return [
    "timeout",
    "-s",
    "TERM",
    "-k",
    String(KILL_AFTER_SECONDS),
    String(innerTimeoutSeconds(spec)),
    ...fed,
  ];
}

export function innerTimeoutSeconds(spec: SandboxSpec): number {
  return Math.ceil(spec.innerTimeoutMs / 1_000);
}

/** A name without "=" takes the variable away: so go the image's own and the engine's HOSTNAME. */
function environment(env: SandboxSpec["env"], imageEnv: readonly string[]): string[] {
  const unwanted = new Set([...imageEnv.map((entry) => entry.split("=", 1)[0] ?? entry), "HOSTNAME"]);
  return [
    ...[...unwanted].filter((name) => name !== "" && !Object.hasOwn(env, name)),
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
  ];
}

export function envValue(spec: SandboxSpec, name: string): string | undefined {
  return Object.entries(spec.env).find(([key]) => key === name)?.[1];
}

/** Where the sandbox gets memory-backed scratch space: /tmp and HOME, unless the caller mounts something there. */
export function tmpfsTargets(spec: SandboxSpec): readonly string[] {
  const home = envValue(spec, "HOME") ?? "/home/agent";
  const taken = new Set(spec.mounts.map((mount) => mount.target));
  return [...new Set(["/tmp", home])].filter((target) => target !== "/" && !taken.has(target));
}

/** Podman knows neither inode limits nor owners here: HOME is open to all then, and there is but one user inside. */
function tmpfs(spec: SandboxSpec, product: CreateFacts["product"]): Record<string, string> {
  const inodes = Math.max(4_096, Math.ceil(spec.caps.tmpBytes / TMP_BYTES_PER_INODE));
  // exec: package managers and test runners build and run programs under /tmp and HOME.
  const common = `rw,exec,nosuid,nodev,size=${spec.caps.tmpBytes}`;
  const own = `mode=0700,uid=${spec.uid},gid=${spec.uid}`;
  return Object.fromEntries(
    tmpfsTargets(spec).map((target) => [
      target,
      product === "podman"
        ? `${common},mode=1777`
        : `${common},nr_inodes=${inodes},${target === "/tmp" ? "mode=1777" : own}`,
    ]),
  );
}

/**
 * Keeps the engine from filling a volume with what the image has at that path, for which it would mount it once more at create:
 * an overlay can be mounted only once (`volatile`, see workspace/overlay).
 */
export const NO_COPY = { NoCopy: true } as NonNullable<MountSettings["VolumeOptions"]>;

/** Those of the caller's mounts that a second container can have too. */
export function bindMounts(spec: SandboxSpec): MountSettings[] {
  return spec.mounts.filter(({ type }) => type === "bind").map(mountSettings);
}

function mountSettings(mount: MountSpec): MountSettings {
  return {
    Type: mount.type,
    Source: mount.type === "bind" ? mount.source : mount.volume,
    Target: mount.target,
    ReadOnly: mount.readOnly,
    ...(mount.type === "volume" ? { VolumeOptions: NO_COPY } : {}),
  };
}

/** `Mounts`, never `Binds`: a missing source must fail instead of becoming an empty directory of root. */
function mounts(spec: SandboxSpec, image: ImageFacts): MountSettings[] {
  const asked = spec.mounts.map(mountSettings);
  // An image's VOLUME would become a writable, unlimited host directory.
  const taken = new Set([...spec.mounts.map((mount) => mount.target), ...tmpfsTargets(spec)]);
  const shadowed = image.volumes.filter((target) => !taken.has(target));
  return [
    ...asked,
    ...shadowed.map(
      (target): MountSettings => ({
        Type: "tmpfs",
        Source: "",
        Target: target,
        TmpfsOptions: { SizeBytes: MIB, Mode: 0o700 },
      }),
    ),
  ];
}

function hostConfig(spec: SandboxSpec, facts: CreateFacts): HostConfig {
  const { caps } = spec;
  const isPodman = facts.product === "podman";
  const nproc = isPodman && facts.maxUserProcesses !== null ? facts.maxUserProcesses : null;
  return {
    ...(spec.runtime == null ? {} : { Runtime: spec.runtime }),
    NetworkMode: "none",
    Init: true,
    AutoRemove: false,
    RestartPolicy: { Name: "no" },
    ReadonlyRootfs: true,
    CapDrop: ["ALL"],
    SecurityOpt: ["no-new-privileges:true", ...(facts.seccomp === null ? [] : [`seccomp=${facts.seccomp}`])],
    IpcMode: "private",
    PidsLimit: facts.pidsLimit,
    NanoCpus: Math.round(caps.cpus * 1e9),
    Memory: caps.memoryBytes,
    MemorySwap: caps.memoryBytes + caps.swapBytes,
    OomScoreAdj: 500,
    ShmSize: SHM_BYTES,
    Tmpfs: tmpfs(spec, facts.product),
    Ulimits: [
      { Name: "nofile", Soft: caps.openFiles, Hard: caps.openFiles },
      { Name: "core", Soft: 0, Hard: 0 },
      ...(nproc === null ? [] : [{ Name: "nproc", Soft: nproc, Hard: nproc }]),
    ],
    // Output is read from the attached stream. A log on top is work of the daemon that no cap of the sandbox bounds: for
    // short lines 70 CPU-seconds per GB (measured), against 4 without.
    LogConfig: { Type: "none", Config: {} },
    Mounts: mounts(spec, facts.image),
    ...(facts.cgroupParent === null ? {} : { CgroupParent: facts.cgroupParent }),
    ...(facts.ioDevice === null ? {} : ioThrottle(caps, facts.ioDevice)),
  };
}

function ioThrottle(caps: SandboxSpec["caps"], path: string): HostConfig {
  const rate = (value: number | null) => (value === null ? [] : [{ Path: path, Rate: value }]);
  return {
    BlkioDeviceReadBps: rate(caps.ioReadBytesPerSecond),
    BlkioDeviceWriteBps: rate(caps.ioWriteBytesPerSecond),
    BlkioDeviceReadIOps: rate(caps.ioReadOpsPerSecond),
    BlkioDeviceWriteIOps: rate(caps.ioWriteOpsPerSecond),
  };
}
