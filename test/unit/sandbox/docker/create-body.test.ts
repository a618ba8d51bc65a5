import { describe, expect, test } from "vitest";
import {
  buildCreateBody,
  type CreateFacts,
  commandLine,
} from "../../../../src/sandbox/docker/create-body.ts";
import { SAMPLE_SPEC } from "./sample-spec.ts";

const FACTS: CreateFacts = {
  image: { id: "sha256:1", env: ["SECRET=x", "PATH=/evil", "EMPTY="], volumes: ["/data", "/workspace"] },
  seccomp: "{}",
  product: "docker",
  ioDevice: null,
  cgroupParent: null,
  pidsLimit: 64,
  maxUserProcesses: 1_000,
};

describe("buildCreateBody", () => {
  const body = buildCreateBody(SAMPLE_SPEC, FACTS);
  const host = body.HostConfig;

  test("closes every door", () => {
    expect(body).toMatchObject({
      Image: "sha256:1",
      User: "10001:10001",
      NetworkDisabled: true,
      Tty: false,
      OpenStdin: false,
      Healthcheck: { Test: ["NONE"] },
      Entrypoint: ["tool", "--flag"],
      Cmd: [],
    });
    expect(host).toMatchObject({
      NetworkMode: "none",
      Init: true,
      AutoRemove: false,
      RestartPolicy: { Name: "no" },
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges:true", "seccomp={}"],
      IpcMode: "private",
    });
    expect(host).not.toHaveProperty("Binds");
    expect(host).not.toHaveProperty("Privileged");
    expect(host).not.toHaveProperty("CapAdd");
  });

  test("sets the caps", () => {
    expect(host).toMatchObject({
      PidsLimit: 64,
      NanoCpus: 500_000_000,
      Memory: 1_000_000,
      MemorySwap: 1_200_000,
      Ulimits: [
        { Name: "nofile", Soft: 100, Hard: 100 },
        { Name: "core", Soft: 0, Hard: 0 },
      ],
    });
    expect(host?.Tmpfs?.["/tmp"]).toContain("size=8000000,nr_inodes=4096,mode=1777");
    expect(host?.Tmpfs?.["/home/agent"]).toContain("mode=0700,uid=10001,gid=10001");
    expect(host).not.toHaveProperty("BlkioDeviceReadBps");
  });

  test("puts the IO caps that were asked for on the device", () => {
    expect(buildCreateBody(SAMPLE_SPEC, { ...FACTS, ioDevice: "/dev/vda" }).HostConfig).toMatchObject({
      BlkioDeviceReadBps: [{ Path: "/dev/vda", Rate: 5 }],
      BlkioDeviceWriteBps: [],
      BlkioDeviceReadIOps: [],
      BlkioDeviceWriteIOps: [{ Path: "/dev/vda", Rate: 7 }],
    });
  });

  test("takes the image's environment and the engine's HOSTNAME away", () => {
    expect(body.Env).toEqual(["SECRET", "EMPTY", "HOSTNAME", "PATH=/usr/bin:/bin", "HOME=/home/agent"]);
  });

  test("covers an image's VOLUME with a small tmpfs unless the caller mounts there", () => {
    expect(host?.Mounts).toMatchObject([
      { Type: "volume", Source: "ws", Target: "/workspace", ReadOnly: false },
      { Type: "tmpfs", Source: "", Target: "/data", TmpfsOptions: { SizeBytes: 1_048_576, Mode: 0o700 } },
    ]);
  });

  test("lets no label of the caller replace one of ours", () => {
    expect(body.Labels).toEqual({
      extra: "1",
      "bulkhead.state": "0123456789abcdef",
      "bulkhead.run": "20261130-142501-3f9a2c",
      "bulkhead.task": "build",
      "bulkhead.attempt": "2",
    });
  });

  test("gives Podman the limit it fails without", () => {
    const limits = buildCreateBody(SAMPLE_SPEC, { ...FACTS, product: "podman" }).HostConfig?.Ulimits;
    expect(limits).toContainEqual({ Name: "nproc", Soft: 1_000, Hard: 1_000 });
  });
});

describe("commandLine", () => {
  test("is the command alone where nothing else is asked", () => {
    expect(commandLine(SAMPLE_SPEC)).toEqual(["tool", "--flag"]);
  });

  test("puts the time limit outside and the standard input inside, rounded up to seconds", () => {
    expect(commandLine({ ...SAMPLE_SPEC, stdinPath: "/in", innerTimeoutMs: 1_001 })).toEqual([
      ...["timeout", "-s", "TERM", "-k", "5", "2"],
      ...["sh", "-c", 'exec "$@" < "$0"', "/in"],
      ...["tool", "--flag"],
    ]);
  });
});
