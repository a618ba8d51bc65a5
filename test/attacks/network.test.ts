/** Ways out by wire: the host, the cloud under it, other containers, name service, and the kernel's own network interfaces (rows D4, D3). */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { createRepository, createRig } from "../support/bulkhead-cli.ts";
import { endRig, waitFor } from "../support/e2e-rig.ts";
import {
  type Evidences,
  IMAGE,
  idsOf,
  PRIVILEGED_OPTIONS,
  plantScripts,
  python,
  runInBulkhead,
  runInPlainContainer,
  type ScriptAttack,
  scriptAttacks,
} from "./support/script-attacks.ts";

const CANARY = `canary-${randomBytes(8).toString("hex")}`;
const SUFFIX = randomBytes(4).toString("hex");
const LINK_LOCAL = "169.254.77.254";
const ABSTRACT = `bulkhead-attack-${SUFFIX}`;

const PLAIN = "a plain container on the engine's default network";
const HOST_NETWORK = "a container with --network host";
const PRIVILEGED = "a container with all privileges and the host's namespaces";

const takesCanary = ({ output }: { output: string }) => output.includes(CANARY);
const get = (address: string) => `curl -s -m 3 http://${address}/ || true`;
const openSocket = (...words: string[]) => python(`print(socket.socket(${words.join(", ")}))`);

const ATTACKS: readonly ScriptAttack[] = [
  {
    id: "network/gateway",
    claim: "reaches a service of the host through the bridge's gateway",
    baseline: PLAIN,
    script: get("$GATEWAY:$GATEWAY_PORT"),
    succeeded: takesCanary,
  },
  {
    id: "network/metadata",
    claim: "reaches a link-local address of the host, where clouds hand out the machine's credentials",
    baseline: PLAIN,
    script: get(`${LINK_LOCAL}:$LINK_LOCAL_PORT`),
    succeeded: takesCanary,
  },
  {
    id: "network/host-loopback",
    claim: "reaches a service that listens on the host's loopback only",
    baseline: HOST_NETWORK,
    script: `${get("127.0.0.1:$LOOPBACK_PORT")}; ${get("localhost:$LOOPBACK_PORT")}; ${get("host.docker.internal:$LOOPBACK_PORT")}`,
    succeeded: takesCanary,
  },
  {
    id: "network/abstract-socket",
    claim: "reaches an abstract Unix socket of the host, which has no file that could be left out",
    baseline: HOST_NETWORK,
    script: python(`
s = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect("\\0${ABSTRACT}"); print(s.recv(4096))`),
    succeeded: takesCanary,
  },
  {
    id: "network/neighbour",
    claim: "reaches another container",
    baseline: PLAIN,
    script: get("$NEIGHBOUR:8000"),
    succeeded: takesCanary,
  },
  {
    id: "network/name-service",
    claim: "carries data out in a datagram to the name server, and one back",
    baseline: PLAIN,
    script: python(`
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)
s.sendto(b"stolen-data.example.org", (os.environ["GATEWAY"], int(os.environ["NAME_PORT"]))); print(s.recv(4096))`),
    succeeded: takesCanary,
  },
  {
    id: "network/host-topology",
    claim: "sees the host's network interfaces and who is connected",
    baseline: HOST_NETWORK,
    script: "grep -E '^ *(eth|en|docker|br-|veth|wl)' /proc/net/dev",
  },
  {
    id: "network/route",
    claim: "has a route to anywhere",
    baseline: PLAIN,
    script: "sed 1d /proc/net/route | grep .",
  },
  {
    id: "network/raw-socket",
    claim: "makes raw packets, with an address of another",
    baseline: PLAIN,
    script: openSocket("socket.AF_INET", "socket.SOCK_RAW", "socket.IPPROTO_RAW"),
  },
  {
    id: "network/packet-socket",
    claim: "listens to all traffic of its network",
    baseline: PLAIN,
    script: openSocket("socket.AF_PACKET", "socket.SOCK_RAW", "socket.ntohs(3)"),
  },
  {
    id: "network/vsock",
    claim: "opens a socket to the virtual machine's host, which no network namespace separates",
    baseline: PRIVILEGED,
    script: openSocket("40", "socket.SOCK_STREAM"),
  },
  {
    id: "network/kernel-crypto",
    claim: "reaches the kernel's crypto sockets (AF_ALG), a family with a history",
    baseline: PRIVILEGED,
    // Refused by the filter is errno 1; a kernel without the family says another.
    script: python(`
try: socket.socket(38, socket.SOCK_SEQPACKET); print("opened")
except OSError as e: print(e); sys.exit(1 if e.errno == 1 else 0)`),
  },
  {
    id: "network/interface-settings",
    claim: "gives an interface another address",
    baseline: PRIVILEGED,
    script: python(`
import fcntl, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
request = struct.pack("16sH2s4s8s", b"lo:bulk", socket.AF_INET, b"", socket.inet_aton("127.9.9.9"), b"")
fcntl.ioctl(s, 0x8916, request)
fcntl.ioctl(s, 0x8916, struct.pack("16sH2s4s8s", b"lo:bulk", socket.AF_INET, b"", b"\\0\\0\\0\\0", b""))
print("set")`),
  },
  {
    id: "network/host-address",
    claim: "listens on the host's addresses, in the place of a service that has ended",
    baseline: HOST_NETWORK,
    script: python(`
s = socket.socket(); s.bind((os.environ["GATEWAY"], 0)); s.listen(); print(s.getsockname())`),
  },
];

const rig = createRig();
const servers: Array<Server | Socket> = [];
const baselines = new Map<string, Evidences>();
let guarded: Evidences;

/** Answers every connection with the canary, as HTTP. */
async function serveCanary(where: { host: string } | { path: string }): Promise<number> {
  const body = `HTTP/1.0 200 OK\r\nContent-Length: ${CANARY.length}\r\n\r\n${CANARY}`;
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.resume();
    socket.end(body);
  });
  server.listen("host" in where ? { ...where, port: 0 } : where);
  await once(server, "listening");
  servers.push(server);
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function answerDatagrams(address: string): Promise<number> {
  const socket = createSocket("udp4", (_message, peer) => socket.send(CANARY, peer.port, peer.address));
  socket.bind(0, address);
  await once(socket, "listening");
  servers.push(socket);
  return socket.address().port;
}

const docker = (...args: string[]) => execFileSync("docker", args, { encoding: "utf8" }).trim();

/** A container beside the attacker's, with something to take. */
async function startNeighbour(): Promise<{ address: string; gateway: string }> {
  const serve = `import http.server as h; h.HTTPServer(('', 8000), type('H', (h.BaseHTTPRequestHandler,), {'do_GET': lambda r: (r.send_response(200), r.end_headers(), r.wfile.write(b'${CANARY}'))})).serve_forever()`;
  const name = `bulkhead-attack-${SUFFIX}`;
  const label = ["--label", "bulkhead.test=attacks"];
  docker("run", "--detach", "--rm", "--init", "--name", name, ...label, IMAGE, "python3", "-c", serve);
  const format = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{.Gateway}}{{end}}";
  const [address = "", gateway = ""] = docker("inspect", "--format", format, name).split(" ");
  await waitFor("the neighbour to answer", async () => {
    return await fetch(`http://${address}:8000/`).then(
      (response) => response.ok,
      () => false,
    );
  });
  return { address, gateway };
}

beforeAll(async () => {
  const repository = createRepository(join(rig.root, "repo"), { "README.md": "hello\n" });
  const { address: neighbour, gateway } = await startNeighbour();
  const subnet = `${LINK_LOCAL.slice(0, LINK_LOCAL.lastIndexOf("."))}.0/24`;
  const label = ["--label", "bulkhead.test=attacks"];
  docker("network", "create", "--subnet", subnet, "--gateway", LINK_LOCAL, ...label, ABSTRACT);
  const variables = {
    GATEWAY: gateway,
    GATEWAY_PORT: await serveCanary({ host: gateway }),
    LINK_LOCAL_PORT: await serveCanary({ host: LINK_LOCAL }),
    LOOPBACK_PORT: await serveCanary({ host: "127.0.0.1" }),
    NAME_PORT: await answerDatagrams(gateway),
    NEIGHBOUR: neighbour,
  };
  await serveCanary({ path: `\0${ABSTRACT}` });
  const prelude = Object.entries(variables).map(([name, value]) => `export ${name}=${value};`);
  plantScripts(repository, ATTACKS, prelude.join(" "));
  for (const [name, options] of [
    [PLAIN, ["--user", "0"]],
    [HOST_NETWORK, ["--user", "0", "--network", "host"]],
    [PRIVILEGED, [...PRIVILEGED_OPTIONS]],
  ] as const) {
    baselines.set(name, await runInPlainContainer(repository, options, idsOf(ATTACKS, name)));
  }
  guarded = await runInBulkhead(rig, repository);
});

afterAll(async () => {
  for (const server of servers) server.close();
  docker("rm", "--force", `bulkhead-attack-${SUFFIX}`);
  docker("network", "rm", ABSTRACT);
  await endRig(rig);
});

describe("network", () => {
  scriptAttacks(ATTACKS, { baselines, bulkhead: () => guarded });
});
