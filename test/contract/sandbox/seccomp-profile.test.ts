import { expect, test } from "vitest";
import { seccompProfile } from "../../../src/sandbox/docker/seccomp-profile.ts";

interface Profile {
  readonly defaultAction: string;
  readonly archMap: ReadonlyArray<{
    readonly architecture: string;
    readonly subArchitectures: readonly string[];
  }>;
  readonly syscalls: ReadonlyArray<{
    readonly names: readonly string[];
    readonly action: string;
    readonly args?: ReadonlyArray<{ readonly index: number; readonly value: number; readonly op: string }>;
  }>;
}

const profile = JSON.parse(seccompProfile()) as Profile;
const allowed = profile.syscalls.filter(({ action }) => action === "SCMP_ACT_ALLOW");
const freely = new Set(allowed.filter(({ args }) => args === undefined).flatMap(({ names }) => names));

test("the profile is an allow-list, for 64-bit programs only", () => {
  expect(profile.defaultAction).toBe("SCMP_ACT_ERRNO");
  for (const { subArchitectures } of profile.archMap) expect(subArchitectures).toEqual([]);
});

test("what reaches the kernel's wide surfaces is not on it", () => {
  for (const name of [
    ...["bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key"],
    ...["io_uring_setup", "io_uring_enter", "io_uring_register", "open_by_handle_at", "pidfd_getfd"],
    ...["mount", "umount2", "move_mount", "fsopen", "fsmount", "open_tree", "pivot_root", "chroot"],
    ...[
      "unshare",
      "setns",
      "clone3",
      "kexec_load",
      "init_module",
      "finit_module",
      "reboot",
      "swapon",
      "syslog",
    ],
    ...["socket", "socketcall", "clone", "personality", "modify_ldt", "ioperm", "iopl"],
  ]) {
    expect(freely.has(name), name).toBe(false);
  }
});

test("of the socket families only Unix, IPv4, IPv6 and netlink are", () => {
  const families = allowed
    .filter(({ names }) => names.includes("socket"))
    .map(({ args }) => args?.[0])
    .map((arg) => (arg?.index === 0 && arg.op === "SCMP_CMP_EQ" ? arg.value : Number.NaN));
  expect(families.sort((a, b) => a - b)).toEqual([1, 2, 10, 16]);
});
