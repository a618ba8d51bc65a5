import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findEngine, pingEngine } from "../../../src/sandbox/docker/find-engine.ts";

/** Nothing of this machine: a home, a runtime folder and sockets of our own. The usual system sockets still count. */
let home = "";
const open: Array<() => void> = [];

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "bh-find-"));
});
afterEach(async () => {
  for (const close of open.splice(0)) close();
  await rm(home, { recursive: true, force: true });
});

const asEngine =
  (version: string): RequestListener =>
  (request, response) => {
    response.setHeader("content-type", request.url === "/_ping" ? "text/plain" : "application/json");
    if (request.url === "/_ping") response.end("OK");
    else if (request.url === "/version")
      response.end(JSON.stringify({ Version: version, ApiVersion: "1.41" }));
    else response.writeHead(404).end();
  };

async function listen(
  server: Server | ReturnType<typeof createNetServer>,
  at: string | number,
): Promise<void> {
  if (typeof at === "string") await mkdir(dirname(at), { recursive: true });
  await new Promise<void>((resolve) => server.listen(at as number, resolve));
  open.push(() => server.close());
}

async function fakeEngine(path: string, version = "1.2.3"): Promise<string> {
  await listen(createServer(asEngine(version)), path);
  return `unix://${path}`;
}

async function writeContext(name: string, host: string): Promise<void> {
  const id = createHash("sha256").update(name).digest("hex");
  const folder = join(home, ".docker/contexts/meta", id);
  await mkdir(folder, { recursive: true });
  const meta = { Name: name, Metadata: {}, Endpoints: { docker: { Host: host, SkipTLSVerify: false } } };
  await writeFile(join(folder, "meta.json"), JSON.stringify(meta));
}

const env = (over: Record<string, string> = {}) => ({ HOME: home, PATH: process.env["PATH"], ...over });

describe("findEngine", () => {
  test("goes by the order --engine, BULKHEAD_ENGINE, DOCKER_HOST, context", async () => {
    const [a, b, c, d] = await Promise.all(
      ["a", "b", "c", "d"].map((name) => fakeEngine(join(home, `${name}.sock`), name)),
    );
    await writeContext("work", d ?? "");
    await writeFile(join(home, ".docker/config.json"), JSON.stringify({ currentContext: "work" }));
    const all = env({ BULKHEAD_ENGINE: b ?? "", DOCKER_HOST: c ?? "" });
    expect(await findEngine(all, { explicit: a ?? "" })).toMatchObject({
      endpoint: a,
      version: "a",
      why: "named by --engine",
    });
    expect(await findEngine(all)).toMatchObject({ endpoint: b, why: "named by BULKHEAD_ENGINE" });
    expect(await findEngine(env({ DOCKER_HOST: c ?? "" }))).toMatchObject({
      endpoint: c,
      why: "named by DOCKER_HOST",
    });
    expect(await findEngine(env())).toMatchObject({
      endpoint: d,
      version: "d",
      why: 'docker context "work" answered',
    });
  });

  test("DOCKER_CONTEXT beats the configured context, and DOCKER_CONFIG moves the folder", async () => {
    const endpoint = await fakeEngine(join(home, "x.sock"), "x");
    await writeContext("other", endpoint);
    await writeFile(join(home, ".docker/config.json"), JSON.stringify({ currentContext: "gone" }));
    const elsewhere = env({
      HOME: "/nonexistent",
      DOCKER_CONFIG: join(home, ".docker"),
      DOCKER_CONTEXT: "other",
    });
    expect(await findEngine(elsewhere)).toMatchObject({ endpoint, why: 'named by docker context "other"' });
  });

  test("never falls back from an engine the person named", async () => {
    await fakeEngine(join(home, ".docker/run/docker.sock"));
    const dead = `unix://${join(home, "dead.sock")}`;
    const found = await findEngine(env(), { explicit: dead });
    expect(found).toEqual({
      endpoint: null,
      named: dead,
      tried: [{ endpoint: dead, source: "--engine", outcome: "no such socket" }],
    });
  });

  test("a named context without an endpoint is an error, a configured one is passed over", async () => {
    const podman = await fakeEngine(join(home, "run/podman/podman.sock"), "podman");
    const places = env({ XDG_RUNTIME_DIR: join(home, "run") });
    const named = await findEngine({ ...places, DOCKER_CONTEXT: "gone" });
    expect(named.endpoint).toBeNull();
    expect(named.tried.at(-1)?.outcome).toContain("no endpoint in ");

    await mkdir(join(home, ".docker"), { recursive: true });
    await writeFile(join(home, ".docker/config.json"), JSON.stringify({ currentContext: "gone" }));
    const passedOver = await findEngine(places);
    expect(passedOver.endpoint).not.toBeNull();
    expect(passedOver.tried[0]?.source).toBe('docker context "gone"');
    // Where this machine has a system engine, that one comes before Podman.
    if (passedOver.endpoint !== "unix:///var/run/docker.sock") expect(passedOver.endpoint).toBe(podman);
  });

  test("survives a broken config.json", async () => {
    await mkdir(join(home, ".docker"), { recursive: true });
    await writeFile(join(home, ".docker/config.json"), "{ not json");
    const endpoint = await fakeEngine(join(home, "e.sock"));
    expect(await findEngine(env(), { explicit: endpoint })).toMatchObject({ endpoint });
  });

  test("reaches a plain tcp engine", async () => {
    const server = createServer(asEngine("tcp"));
    await listen(server, 0);
    const { port } = server.address() as AddressInfo;
    const endpoint = `tcp://127.0.0.1:${port}`;
    expect(await findEngine(env({ DOCKER_HOST: endpoint }))).toMatchObject({ endpoint, version: "tcp" });
  });

  test("reaches an ssh engine through the system's ssh, with the target as arguments", async () => {
    const socket = join(home, "far.sock");
    await fakeEngine(socket, "far");
    const bin = join(home, "bin");
    await mkdir(bin);
    const argvFile = join(home, "argv");
    const fakeSsh = `#!/usr/bin/env node
require("node:fs").writeFileSync(${JSON.stringify(argvFile)}, process.argv.slice(2).join(" "));
const far = require("node:net").connect(${JSON.stringify(socket)});
process.stdin.pipe(far).pipe(process.stdout);
`;
    await writeFile(join(bin, "ssh"), fakeSsh);
    await chmod(join(bin, "ssh"), 0o755);
    const found = await findEngine(
      env({ PATH: `${bin}:${process.env["PATH"] ?? ""}`, DOCKER_HOST: "ssh://me@far.example:2222" }),
    );
    expect(found).toMatchObject({ endpoint: "ssh://me@far.example:2222", version: "far" });
    expect(await readFile(argvFile, "utf8")).toMatch(
      /-l me -p 2222 -- far\.example docker system dial-stdio$/,
    );
  });

  test("is not misled by the DOCKER_HOST of the process itself", async () => {
    const before = process.env["DOCKER_HOST"];
    process.env["DOCKER_HOST"] = "tcp://127.0.0.1:1";
    try {
      const endpoint = await fakeEngine(join(home, "own.sock"), "own");
      expect(await findEngine(env(), { explicit: endpoint })).toMatchObject({ endpoint, version: "own" });
    } finally {
      if (before === undefined) delete process.env["DOCKER_HOST"];
      else process.env["DOCKER_HOST"] = before;
    }
  });
});

describe("pingEngine says what is wrong", () => {
  test("with an endpoint it cannot read", async () => {
    const outcome = await pingEngine("carrier-pigeon://x", {});
    expect(outcome).toMatchObject({
      ok: false,
      problem: expect.stringContaining('"carrier-pigeon://x"') as string,
    });
  });

  test("with a socket nobody listens on any more", async () => {
    const path = join(home, "dead.sock");
    // Only a killed process leaves its socket file: node removes it when it ends by itself.
    const script = `require("node:net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
    spawnSync(process.execPath, ["-e", script]);
    const outcome = await pingEngine(`unix://${path}`, {});
    expect(outcome).toMatchObject({
      ok: false,
      problem: expect.stringContaining("nothing listens") as string,
    });
  });

  test("with a web server that is no engine", async () => {
    await listen(
      createServer((_, response) => response.writeHead(404).end("nope")),
      join(home, "web.sock"),
    );
    const outcome = await pingEngine(`unix://${join(home, "web.sock")}`, {});
    expect(outcome).toMatchObject({ ok: false, problem: expect.stringContaining("HTTP 404") as string });
  });

  test("with a listener that accepts and stays silent, within the bound", async () => {
    const sockets: Socket[] = [];
    await listen(
      createNetServer((socket) => sockets.push(socket)),
      join(home, "mute.sock"),
    );
    const outcome = await pingEngine(`unix://${join(home, "mute.sock")}`, {}, null, 150);
    expect(outcome).toEqual({ ok: false, problem: "no answer within 0.15 s" });
    for (const socket of sockets) socket.destroy();
  });

  test("with an engine that drops the line after the headers, within the bound", async () => {
    const cut: RequestListener = (_, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("half");
      setImmediate(() => response.socket?.destroy());
    };
    await listen(createServer(cut), join(home, "cut.sock"));
    expect((await pingEngine(`unix://${join(home, "cut.sock")}`, {}, null, 1_000)).ok).toBe(false);
  });
});
