import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { EngineContext } from "./engine-context.ts";

/** The package root is three levels up from both src/sandbox/docker and dist/sandbox/docker. */
const PROFILE_URL = new URL("../../../images/seccomp.json", import.meta.url);

let cached: string | undefined;

/**
 * The system call filter every sandbox gets. `images/seccomp.json` is an allow-list for 64-bit x86 and ARM: no namespaces,
 * mounts, keys, bpf or io_uring, and of the socket families only Unix, IPv4, IPv6 and netlink (AF_VSOCK would reach past
 * an empty network namespace). It is our own list, made from the kernel's table of system calls less what is refused.
 * LIMITATION: 32-bit programs are killed, since `socketcall` cannot be filtered by family.
 */
export function seccompProfile(): string {
  cached ??= JSON.stringify(JSON.parse(readFileSync(PROFILE_URL, "utf8")));
  return cached;
}

/**
 * What the engine's `seccomp=` option is to say: Docker takes the content, Podman a path on its own host.
 * LIMITATION: a Podman on another host filters by its own default profile (null).
 */
export function seccompOption(context: Pick<EngineContext, "product" | "sharesHost">): string | null {
  if (context.product === "docker") return seccompProfile();
  return context.sharesHost ? fileURLToPath(PROFILE_URL) : null;
}
