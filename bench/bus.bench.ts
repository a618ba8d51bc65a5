/**
 * Claim: a bus call from inside a container, validated against its schema and written to the run's log, costs at most three times a bare
 * newline-delimited echo on the same kind of socket. The same client, in the same hardened container, asks both in turn.
 * Run with `node bench/bus.bench.ts`; it needs a container engine.
 */
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { createCallerBus } from "../src/bus/caller-bus.ts";
import { openDoor } from "../src/door/unix-door.ts";
import { type AttemptKey, runIdSchema, taskIdSchema } from "../src/model/ids.ts";
import { openEventStore } from "../src/store/sqlite/sqlite-event-store.ts";
import { createBusPort } from "../src/supervisor/bus-port.ts";
import { docker, testImage } from "../test/support/shell-container.ts";
import { type BenchRow, printRows, rowOf, spread } from "./support/bench-row.ts";

const ROUNDS = 12;
/** The calls of all rounds and the warm-up stay within the burst of the default rate: no bound is lifted for the measurement. */
const CALLS_PER_ROUND = 300;
const WARM_UP_CALLS = 1000;
const NODE = join(dirname(createRequire(import.meta.url).resolve("node/package.json")), "bin/node");

/** One round as the client saw it, in microseconds. */
interface Round {
  readonly echo: { readonly p50: number; readonly p99: number };
  readonly bus: { readonly p50: number; readonly p99: number };
}

/** Measures round trips from a container; every round asks both servers, each first in turn. */
export async function runBusBench(): Promise<BenchRow[]> {
  const directory = await mkdtemp(join(tmpdir(), "bulkhead-bench-"));
  await using cleanUp = new AsyncDisposableStack();
  cleanUp.defer(() => rm(directory, { recursive: true }));
  await chmod(directory, 0o755);
  const echo = createEchoServer().listen(join(directory, "echo.sock"));
  await once(echo, "listening");
  cleanUp.defer(() => void echo.close());
  await chmod(join(directory, "echo.sock"), 0o666);
  await writeFile(join(directory, "client.mjs"), CLIENT);

  const caller: AttemptKey = {
    runId: runIdSchema.parse("20260101-000000-abcdef"),
    taskId: taskIdSchema.parse("bench"),
    attempt: 1,
  };
  const store = openEventStore(join(directory, "log.db"));
  cleanUp.defer(() => store.close());
  const port = {
    ...createBusPort({ stateDir: directory, store, run: () => null }),
    context: async () => ({}),
  };
  const bus = createCallerBus(caller, port, QUIET);
  const door = await openDoor({ socketPath: join(directory, "door.sock"), mode: 0o666, handlers: bus });
  cleanUp.defer(() => door.close());

  const rounds: Round[] = JSON.parse(await runClient(directory));
  store.flush();
  let logged = 0;
  for (const { event } of store.read(caller.runId)) {
    if (event.type === "bus-called" && event.errorCode === null) logged += 1;
  }
  const made = WARM_UP_CALLS + ROUNDS * CALLS_PER_ROUND;
  if (logged !== made) throw new Error(`${made} calls were made, ${logged} are in the log without an error`);

  const show = (pick: (round: Round) => number) => spread(rounds.map(pick))[1].toFixed(0);
  return [
    rowOf(
      "bus: p50 of a validated, logged call from a container over a bare echo (less is better)",
      "newline-delimited echo, same socket kind, client and run",
      rounds.map((round) => round.bus.p50 / round.echo.p50),
      `medians: bus ${show(({ bus: { p50 } }) => p50)} µs, echo ${show(({ echo: { p50 } }) => p50)} µs`,
    ),
    rowOf(
      "bus: p99 of the same (less is better)",
      "newline-delimited echo, same socket kind, client and run",
      rounds.map((round) => round.bus.p99 / round.echo.p99),
      `medians: bus ${show(({ bus: { p99 } }) => p99)} µs, echo ${show(({ echo: { p99 } }) => p99)} µs`,
    ),
  ];
}

/** The least that can be done with lines: cut, and send back. */
function createEchoServer() {
  return createServer((socket) => {
    let rest = "";
    socket.setEncoding("utf8");
    socket.on("data", (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) socket.write(`${line}\n`);
    });
    socket.on("error", () => socket.destroy());
  });
}

async function runClient(directory: string): Promise<string> {
  const container = await docker.createContainer({
    Image: await testImage(),
    Entrypoint: [],
    Cmd: ["/opt/node", "/run/bulkhead/client.mjs"],
    User: "10001:10001",
    NetworkDisabled: true,
    Labels: { "bulkhead.bench": "bus" },
    HostConfig: {
      NetworkMode: "none",
      CapDrop: ["ALL"],
      ReadonlyRootfs: true,
      SecurityOpt: ["no-new-privileges:true"],
      Mounts: [
        { Type: "bind", Source: directory, Target: "/run/bulkhead", ReadOnly: true },
        { Type: "bind", Source: NODE, Target: "/opt/node", ReadOnly: true },
      ],
    },
  });
  try {
    const stream = await container.attach({ stream: true, stdout: true, stderr: true });
    const output = new PassThrough();
    container.modem.demuxStream(stream, output, output);
    stream.once("end", () => output.end());
    const text = output.setEncoding("utf8").toArray();
    await container.start();
    const { StatusCode } = (await container.wait()) as { StatusCode: number };
    const said = (await text).join("");
    if (StatusCode !== 0) throw new Error(`the client in the container ended with ${StatusCode}: ${said}`);
    return said;
  } finally {
    await container.remove({ force: true, v: true });
  }
}

/** Runs inside the container: one call after the other over one connection to each server. */
const CLIENT = `
import { createConnection } from "node:net";
import { once } from "node:events";

async function open(path) {
  const socket = createConnection(path);
  socket.setEncoding("utf8");
  await once(socket, "connect");
  let rest = "", wake;
  socket.on("data", (text) => { rest += text; if (rest.endsWith("\\n")) { const line = rest; rest = ""; wake(line); } });
  socket.on("close", () => process.exit(1));
  let id = 0;
  return async () => {
    id += 1;
    const answer = new Promise((resolve) => { wake = resolve; });
    socket.write(JSON.stringify({ jsonrpc: "2.0", id, method: "status", params: { state: "testing", message: "m".repeat(100), percent: 40 } }) + "\\n");
    const reply = JSON.parse(await answer);
    if (reply.id !== id || reply.error) throw new Error(JSON.stringify(reply));
  };
}

async function measure(call, count) {
  const times = [];
  for (let index = 0; index < count; index += 1) {
    const started = performance.now();
    await call();
    times.push((performance.now() - started) * 1000);
  }
  times.sort((a, b) => a - b);
  return { p50: times[Math.floor(count * 0.5)], p99: times[Math.floor(count * 0.99)] };
}

const echo = await open("/run/bulkhead/echo.sock");
const bus = await open("/run/bulkhead/door.sock");
await measure(echo, ${WARM_UP_CALLS});
await measure(bus, ${WARM_UP_CALLS});
const rounds = [];
for (let round = 0; round < ${ROUNDS}; round += 1) {
  const result = {};
  for (const name of round % 2 ? ["echo", "bus"] : ["bus", "echo"]) {
    result[name] = await measure(name === "bus" ? bus : echo, ${CALLS_PER_ROUND});
  }
  rounds.push(result);
}
process.stdout.write(JSON.stringify(rounds), () => process.exit(0));
`;

const ignore = () => undefined;
const QUIET = { debug: ignore, info: ignore, warn: ignore, error: ignore };

if (process.argv[1] === fileURLToPath(import.meta.url)) printRows(await runBusBench());
