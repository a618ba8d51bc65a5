import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** What a test makes the fake engine do wrong. */
export interface Faults {
  /** `create` makes the container, then the connection breaks before the answer. */
  breakCreate?: boolean;
  /** `start` starts the container, then the connection breaks before the answer. */
  breakStart?: boolean;
  /** `wait` answers its headers, then the connection breaks. */
  breakWait?: boolean;
  /** The event stream never says anything. */
  muteEvents?: boolean;
}

interface FakeContainer {
  readonly id: string;
  readonly name: string;
  readonly labels: Record<string, string>;
  state: "created" | "running" | "exited";
  exitCode: number;
  attached: Socket | null;
  readonly waiting: ServerResponse[];
}

export interface FakeEngine {
  readonly endpoint: string;
  readonly faults: Faults;
  readonly requests: readonly string[];
  readonly containers: ReadonlyMap<string, FakeContainer>;
  /** Ends a container: its output closes, `wait` answers, "die" is sent. */
  finish(name: string, exitCode: number): void;
  print(name: string, text: string): void;
  /** Closes every connection and refuses new ones. */
  stop(): Promise<void>;
  /** Listens again, with the same containers. */
  restart(): Promise<void>;
}

/** A small Docker API server on a Unix socket, so that real dockerode and our driver meet faults no engine can be asked for. */
export async function openFakeEngine(directory: string): Promise<FakeEngine> {
  const path = `${directory}/engine-${randomBytes(4).toString("hex")}.sock`;
  const faults: Faults = {};
  const requests: string[] = [];
  const containers = new Map<string, FakeContainer>();
  const sockets = new Set<Socket>();
  const listeners = new Set<ServerResponse>();

  const find = (key: string) => containers.get(key) ?? [...containers.values()].find(({ id }) => id === key);

  function stateOf(one: FakeContainer): object {
    return {
      Status: one.state,
      Running: one.state === "running",
      Restarting: false,
      OOMKilled: false,
      Pid: 0,
      ExitCode: one.exitCode,
      StartedAt: "2026-11-30T14:25:01.5Z",
      FinishedAt: "2026-11-30T14:25:01.2Z",
    };
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://engine");
    const route = `${request.method} ${url.pathname.replace(/^\/containers\/(?!create|json)[^/]+/, "/containers/ID")}`;
    const key = /^\/containers\/([^/]+)/.exec(url.pathname)?.[1] ?? "";
    requests.push(route);
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const answer = (status: number, value?: unknown) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(value === undefined ? "" : JSON.stringify(value));
    };
    const one = find(key);
    switch (route) {
      case "GET /info":
        return answer(200, {
          Driver: "overlay2",
          CgroupDriver: "systemd",
          CgroupVersion: "2",
          NCPU: 2,
          MemTotal: 1e9,
        });
      case "GET /version":
        return answer(200, { Version: "99.0", ApiVersion: "1.99", Components: [{ Name: "Engine" }] });
      case "GET /images/json":
        return answer(200, []);
      case "GET /images/fake:1/json":
        return answer(200, { Id: "sha256:1", Config: { Env: ["SECRET=1"] } });
      case "GET /events": {
        response.writeHead(200);
        response.flushHeaders();
        listeners.add(response);
        response.on("close", () => listeners.delete(response));
        return;
      }
      case "POST /containers/create": {
        const name = url.searchParams.get("name") ?? "";
        if (containers.has(name)) return answer(409, { message: "name in use" });
        const { Labels } = JSON.parse(body) as { Labels: Record<string, string> };
        const id = randomBytes(32).toString("hex");
        containers.set(name, {
          id,
          name,
          labels: Labels,
          state: "created",
          exitCode: 0,
          attached: null,
          waiting: [],
        });
        if (faults.breakCreate === true) return void request.socket.destroy();
        return answer(201, { Id: id });
      }
      case "GET /containers/json":
        return answer(
          200,
          [...containers.values()].map(({ id, name, state, labels }) => ({
            Id: id,
            Names: [`/${name}`],
            State: state,
            Labels: labels,
            Created: 1,
          })),
        );
    }
    if (one === undefined) return answer(404, { message: "no such container" });
    switch (route) {
      case "GET /containers/ID/json":
        return answer(200, {
          Id: one.id,
          Name: `/${one.name}`,
          State: stateOf(one),
          HostConfig: {},
          Config: { Labels: one.labels },
        });
      case "POST /containers/ID/start":
        one.state = "running";
        if (faults.breakStart === true) return void request.socket.destroy();
        return answer(204);
      case "POST /containers/ID/wait":
        if (one.state === "exited") return answer(200, { StatusCode: one.exitCode });
        response.writeHead(200, { "content-type": "application/json" });
        response.flushHeaders();
        if (faults.breakWait === true) return void setImmediate(() => request.socket.destroy());
        one.waiting.push(response);
        return;
      case "POST /containers/ID/kill":
        if (one.state !== "running") return answer(409, { message: "not running" });
        finish(one.name, 137);
        return answer(204);
      case "DELETE /containers/ID":
        containers.delete(one.name);
        return answer(204);
      default:
        return answer(404, { message: `the fake engine does not know ${route}` });
    }
  }

  function finish(name: string, exitCode: number): void {
    const one = find(name);
    if (one === undefined) return;
    one.state = "exited";
    one.exitCode = exitCode;
    one.attached?.end();
    for (const response of one.waiting.splice(0)) response.end(JSON.stringify({ StatusCode: exitCode }));
    if (faults.muteEvents === true) return;
    const event = {
      Type: "container",
      Action: "die",
      Actor: { ID: one.id },
      time: Math.floor(Date.now() / 1_000),
    };
    for (const listener of listeners) listener.write(`${JSON.stringify(event)}\n`);
  }

  const open = () => {
    const server = createServer((request, response) => void handle(request, response));
    server.on("connection", (socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => sockets.delete(socket));
    });
    server.on("upgrade", (request, socket: Socket) => {
      const one = find(/^\/containers\/([^/]+)\/attach/.exec(request.url ?? "")?.[1] ?? "");
      requests.push("POST /containers/ID/attach");
      if (one !== undefined) one.attached = socket;
      socket.write("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
    });
    return new Promise<typeof server>((resolve) => server.listen(path, () => resolve(server)));
  };

  let server = await open();
  return {
    endpoint: `unix://${path}`,
    faults,
    requests,
    containers,
    finish,
    print(name, text) {
      const payload = Buffer.from(text);
      const header = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0]);
      header.writeUInt32BE(payload.length, 4);
      find(name)?.attached?.write(Buffer.concat([header, payload]));
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    async restart() {
      server = await open();
    },
  };
}
