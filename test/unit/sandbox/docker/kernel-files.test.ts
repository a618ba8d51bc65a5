import { describe, expect, test } from "vitest";
import {
  cgroupsAtPath,
  cgroupsFromTable,
  parseHierarchies,
} from "../../../../src/sandbox/docker/cgroup-files.ts";
import { describeAnswers } from "../../../../src/sandbox/docker/describe-engine.ts";
import { parseEvent } from "../../../../src/sandbox/docker/exit-watch.ts";
import { readOpenFiles, readTmp } from "../../../../src/sandbox/docker/read-caps.ts";
import { largest } from "../../../../src/sandbox/docker/usage-meter.ts";

const V1 = `31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw`;
const V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";

describe("control groups", () => {
  test("v1 controllers have their own places, joined ones share one", () => {
    const dirs = cgroupsFromTable(
      "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/docker/abc",
      parseHierarchies(V1),
    );
    expect(dirs("memory")).toEqual({ version: 1, dir: "/sys/fs/cgroup/memory/docker/abc" });
    expect(dirs("cpuacct")).toEqual({ version: 1, dir: "/sys/fs/cgroup/cpu,cpuacct/docker/abc" });
  });

  test("v2 has one place for all", () => {
    const dirs = cgroupsFromTable("0::/system.slice/docker-abc.scope", parseHierarchies(V2));
    expect(dirs("pids")).toEqual({ version: 2, dir: "/sys/fs/cgroup/system.slice/docker-abc.scope" });
  });

  test("a path outside of what is mounted here is not guessed", () => {
    expect(cgroupsFromTable("0::/../../other", parseHierarchies(V2))("memory")).toBeNull();
    const nested = parseHierarchies("30 23 0:26 /docker/me /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
    expect(cgroupsFromTable("0::/docker/other", nested)("memory")).toBeNull();
    expect(cgroupsFromTable("0::/docker/me/in", nested)("memory")?.dir).toBe("/sys/fs/cgroup/in");
    expect(cgroupsAtPath("/x", nested)("memory")).toBeNull();
  });

  test("our own group lies in the hierarchy that has the controller", () => {
    expect(cgroupsAtPath("/x", parseHierarchies(V1))("memory")?.dir).toBe("/sys/fs/cgroup/memory/x");
    expect(cgroupsAtPath("/x", parseHierarchies(V2))("memory")).toEqual({
      version: 2,
      dir: "/sys/fs/cgroup/x",
    });
  });

  test("counters that vanish do not take back what was seen", () => {
    const nothing = {
      cpuMs: null,
      memoryBytes: null,
      peakMemoryBytes: null,
      pids: null,
      peakPids: null,
      pidsDenied: null,
      oomKills: null,
      ioReadBytes: null,
      ioWriteBytes: null,
    };
    const seen = { ...nothing, cpuMs: 5, memoryBytes: 70, pids: 4 };
    expect(largest(seen, nothing)).toMatchObject({
      cpuMs: 5,
      peakMemoryBytes: 70,
      peakPids: 4,
      oomKills: null,
    });
  });
});

describe("files of a process", () => {
  test("the hard limit of open files", () => {
    expect(
      readOpenFiles("Max open files            1024                 4096                 files     "),
    ).toBe(4_096);
    expect(
      readOpenFiles("Max open files            1024                 unlimited            files     "),
    ).toBe(Number.POSITIVE_INFINITY);
    expect(readOpenFiles("")).toBeNull();
  });

  test("the largest scratch file system, and none without a limit", () => {
    const mounts = "tmpfs /tmp tmpfs rw,size=16k,mode=700 0 0\ntmpfs /home/agent tmpfs rw,size=32k 0 0\n";
    expect(readTmp(mounts, ["/tmp", "/home/agent"])).toBe(32_768);
    expect(readTmp(mounts, ["/tmp", "/other"])).toBe(Number.POSITIVE_INFINITY);
    expect(readTmp("", ["/tmp"])).toBeNull();
  });
});

describe("what engines say", () => {
  test("events in old and new form; anything else is none", () => {
    expect(parseEvent('{"Action":"die","Actor":{"ID":"a"},"time":7}')).toMatchObject({
      id: "a",
      action: "die",
      seconds: 7,
      signal: null,
    });
    expect(parseEvent('{"status":"oom","id":"b"}')).toMatchObject({ id: "b", action: "oom", seconds: null });
    const kill = (signal: unknown) =>
      parseEvent(JSON.stringify({ Action: "kill", id: "c", timeNano: 9, Actor: { Attributes: { signal } } }));
    expect(kill("15")).toMatchObject({ action: "kill", signal: 15 });
    expect(kill("15")?.stamp).toBe(kill("15")?.stamp);
    expect(kill("9")?.stamp).not.toBe(kill("15")?.stamp);
    for (const odd of [9, "KILL", "", null, {}, "999"]) expect(kill(odd)?.signal).toBeNull();
    for (const line of ["", "null", "[]", "{", '{"Action":3}', '"die"']) expect(parseEvent(line)).toBeNull();
  });

  test("remapped, rootless and Podman engines are told apart", () => {
    const about = (info: object, version: object = {}) => describeAnswers("unix:///x", { info, version });
    expect(
      about({ SecurityOptions: ["name=userns"], DockerRootDir: "/var/lib/docker/200000.200000" }).userBase,
    ).toBe(200_000);
    expect(about({ DockerRootDir: "/var/lib/docker/1.1" }).userBase).toBe(0);
    expect(about({ SecurityOptions: ["name=rootless"], CgroupVersion: "2" })).toMatchObject({
      rootless: true,
      cgroupVersion: 2,
    });
    expect(about({}, { Components: [{ Name: "Podman Engine" }] }).product).toBe("podman");
  });
});
