import { readFileSync } from "node:fs";

let cached: string | undefined;

/**
 * The system call filter every sandbox gets, as JSON content (the engine takes content, never a path of ours).
 * `images/seccomp.json` is an allow-list for 64-bit x86 and ARM: no namespaces, mounts, keys, bpf or io_uring, and of
 * the socket families only Unix, IPv4, IPv6 and netlink (AF_VSOCK would reach past an empty network namespace).
 * LIMITATION: 32-bit programs are killed, since `socketcall` cannot be filtered by family.
 */
export function seccompProfile(): string {
  // The package root is three levels up from both src/sandbox/docker and dist/sandbox/docker.
  cached ??= JSON.stringify(
    JSON.parse(readFileSync(new URL("../../../images/seccomp.json", import.meta.url), "utf8")),
  );
  return cached;
}
