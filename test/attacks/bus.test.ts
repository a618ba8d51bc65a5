/** What a task can do with the one socket it has: speak for others, read what is not its own, wear the host out (rows D3, A10). */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe } from "vitest";
import { createEcho, openRig } from "../integration/door/door-rig.ts";
import { type CliResult, commitAll, createRepository, createRig } from "../support/bulkhead-cli.ts";
import { endRig, hasEvent, readEvents, SMALL, waitFor, writePlan } from "../support/e2e-rig.ts";
import { attack } from "./support/attack.ts";
import { call, drip, exchange, post } from "./support/bus-wire.ts";
import { type NaiveDoor, openNaiveDoor } from "./support/naive-door.ts";

const CANARY = `canary-${randomBytes(8).toString("hex")}`;
const MIB = 1024 ** 2;
const NAIVE = "a socket that believes what it is told";

interface Target {
  readonly socketPath: string;
  /** How often something was taken to come from the task. */
  countOf(task: string, method?: "log" | "status"): number;
  /** Where artifacts go. */
  artifacts(): string;
}

const rig = createRig();
const secretPath = join(rig.root, "secret.txt");
const outsidePath = join(rig.root, "planted.txt");
let naive: NaiveDoor;
let running: Promise<CliResult>;
let open: Target;
let guarded: Target;

/** The same act on both doors. */
function onBoth<E>(
  id: string,
  claim: string,
  act: (target: Target) => Promise<E>,
  succeeded: (evidence: E) => boolean,
): void {
  attack<E>({
    id,
    claim,
    baseline: NAIVE,
    unprotected: () => act(open),
    bulkhead: () => act(guarded),
    succeeded,
  });
}

/** Asks for files; the evidence is all that was answered. */
function reads(id: string, claim: string, requests: ReadonlyArray<{ task_id: string; path: string }>): void {
  onBoth(
    id,
    claim,
    async ({ socketPath }) => {
      const answers = await Promise.all(
        requests.map((params) => exchange(socketPath, call("get_file", params))),
      );
      return answers.map(({ received }) => received.slice(0, 300));
    },
    (answers) => answers.some((text) => text.includes(CANARY)),
  );
}

beforeAll(async () => {
  writeFileSync(secretPath, CANARY);
  const directory = join(rig.root, "naive");
  for (const task of ["attacker", "base", "victim", "artifacts"])
    mkdirSync(join(directory, task), { recursive: true });
  writeFileSync(join(directory, "victim/own.txt"), CANARY);
  mkdirSync(join(directory, "attacker/.git"));
  writeFileSync(join(directory, "attacker/.git/config"), CANARY);
  writeFileSync(join(directory, "attacker/big.txt"), "x".repeat(700_000));
  symlinkSync(secretPath, join(directory, "attacker/link"));
  naive = await openNaiveDoor(directory);
  open = {
    socketPath: naive.socketPath,
    countOf: (task, method) =>
      naive.recorded.filter((one) => one.task === task && (method === undefined || one.method === method))
        .length,
    artifacts: () => join(directory, "artifacts"),
  };

  const repository = createRepository(join(rig.root, "repo"), { "big.txt": "x".repeat(700_000) });
  symlinkSync(secretPath, join(repository, "link"));
  commitAll(repository, "link");
  const plan = writePlan(rig, {
    defaults: { ...SMALL, timeout: "120s" },
    tasks: [
      { id: "victim", run: `echo ${CANARY} > own.txt` },
      { id: "attacker", run: "sleep 100" },
    ],
  });
  running = rig.run(["run", plan], { cwd: repository });
  await waitFor("the victim to submit", () => hasEvent(rig, "task-succeeded", "victim"));
  const doors = join(rig.stateDir, "d");
  const door = await waitFor("the attacker's door", () =>
    readdirSync(doors).find((name) => {
      const context = join(doors, name, "context.json");
      return existsSync(context) && readFileSync(context, "utf8").includes('"task": "attacker"');
    }),
  );
  const events = { log: "log-reported", status: "status-reported" } as const;
  guarded = {
    socketPath: join(doors, door, "door.sock"),
    countOf: (task, method) =>
      readEvents(rig).filter(
        ({ event }) =>
          "taskId" in event &&
          event.taskId === task &&
          (method === undefined
            ? event.type === "log-reported" || event.type === "status-reported"
            : event.type === events[method]),
      ).length,
    artifacts: () => {
      const found = readdirSync(rig.stateDir, { recursive: true, encoding: "utf8" });
      const one = found.find((path) => path.endsWith("/artifacts/first.txt"));
      return one === undefined ? rig.stateDir : join(rig.stateDir, one, "..");
    },
  };
});

afterAll(async () => {
  naive.close();
  await rig.run(["cancel", "latest"]);
  await running;
  await endRig(rig);
});

describe("bus", () => {
  onBoth(
    "bus/other-caller",
    "reports in the name of another task, by a field of the call",
    async (target) => {
      const names = { task: "victim", task_id: "victim", taskId: "victim", caller: "victim", attempt: 1 };
      for (const [name, value] of Object.entries(names)) {
        await exchange(target.socketPath, call("status", { state: "done", [name]: value }));
      }
      return target.countOf("victim");
    },
    (count) => count > 0,
  );

  onBoth(
    "bus/other-caller-header",
    "reports in the name of another task, by a header",
    async (target) => {
      const before = target.countOf("victim");
      const headers = "X-Task: victim\r\nX-Forwarded-For: victim\r\nAuthorization: Bearer victim\r\n";
      await exchange(target.socketPath, post(call("log", { message: "x" }), headers));
      return target.countOf("victim") - before;
    },
    (count) => count > 0,
  );

  reads("bus/not-a-dependency", "reads a file of a task that it does not depend on", [
    { task_id: "victim", path: "own.txt" },
  ]);
  reads("bus/parent-path", "reads a file of another task by a path with .. in it", [
    { task_id: "attacker", path: "../victim/own.txt" },
    { task_id: "attacker", path: "x/../../victim/own.txt" },
    { task_id: "..", path: "secret.txt" },
    { task_id: "attacker", path: "..\\victim\\own.txt" },
  ]);
  reads("bus/absolute-path", "reads a file of the host by its path", [
    { task_id: "attacker", path: `../..${secretPath.slice(rig.root.length)}` },
    { task_id: "attacker", path: secretPath },
    { task_id: "attacker", path: `${secretPath}\0.txt` },
    { task_id: "../..", path: "secret.txt" },
  ]);
  reads("bus/link", "reads a file of the host through a symbolic link in its own tree", [
    { task_id: "attacker", path: "link" },
    { task_id: "attacker", path: "link/" },
  ]);
  reads("bus/git-directory", "reads git's own files", [
    { task_id: "attacker", path: ".git/config" },
    { task_id: "attacker", path: ".git/../.git/config" },
  ]);

  onBoth(
    "bus/artifact-path",
    "writes a file of the host by the name of an artifact",
    async ({ socketPath }) => {
      for (const name of ["../../planted.txt", "../../../planted.txt", outsidePath, "..", "a/b"]) {
        await exchange(socketPath, call("put_artifact", { name, content: CANARY }));
      }
      const up = [outsidePath, join(rig.stateDir, "planted.txt"), join(rig.root, "../planted.txt")];
      return up
        .filter((path) => existsSync(path) && readFileSync(path, "utf8").includes(CANARY))
        .map((path) => {
          writeFileSync(path, "");
          return path;
        });
    },
    (written) => written.length > 0,
  );

  onBoth(
    "bus/artifact-count",
    "stores files on the host without end (here: 400)",
    async (target) => {
      const names = ["first.txt", ...Array.from({ length: 399 }, (_, index) => `a${index}.txt`)];
      const calls = names.map((name, index) => call("put_artifact", { name, content: "x" }, index));
      await exchange(target.socketPath, calls, (text) => text.split("\n").length > 400);
      return readdirSync(target.artifacts()).length;
    },
    (count) => count >= 400,
  );

  onBoth(
    "bus/huge-frame",
    "has a call of 8 MiB taken",
    ({ socketPath }) => exchange(socketPath, call("log", { message: "x".repeat(8 * MIB) })),
    ({ received }) => received.includes('"result"'),
  );

  onBoth(
    "bus/endless-frame",
    "sends a line that never ends, all of which is kept in memory (here: 8 MiB)",
    ({ socketPath }) =>
      exchange(
        socketPath,
        ['{"jsonrpc":"2.0","id":1,"method":"', ...Array.from({ length: 8 }, () => "x".repeat(MIB))],
        () => false,
        500,
      ),
    ({ stillOpen }) => stillOpen,
  );

  onBoth(
    "bus/header-bomb",
    "sends a head of 4 MiB",
    ({ socketPath }) => exchange(socketPath, post(call("ping", {}), `X-Bomb: ${"x".repeat(4 * MIB)}\r\n`)),
    ({ received }) => received.includes("200 OK"),
  );

  onBoth(
    "bus/request-smuggling",
    "has a second request taken out of the body of the first, by two lengths that differ",
    ({ socketPath }) => {
      const hidden = post(call("log", { message: "hidden" }));
      const body = "0\r\n\r\n";
      const head = `POST /rpc HTTP/1.1\r\nHost: door\r\nTransfer-Encoding: chunked\r\nContent-Length: ${body.length}\r\n\r\n`;
      return exchange(socketPath, head + body + hidden, (text) => text.split("HTTP/1.1 ").length > 2);
    },
    ({ received }) => received.split("HTTP/1.1 200").length > 2,
  );

  onBoth(
    "bus/many-connections",
    "holds connections open until the host has no descriptors left (here: 500)",
    async ({ socketPath }) => {
      const sockets = Array.from({ length: 500 }, () => createConnection(socketPath));
      let alive = sockets.length;
      for (const socket of sockets) {
        socket.resume();
        socket.on("error", () => undefined);
        socket.on("close", () => {
          alive -= 1;
        });
      }
      await delay(500);
      const held = alive;
      for (const socket of sockets) socket.destroy();
      // The door is to be free again for the next attack.
      await waitFor("the door to be free", async () =>
        (await exchange(socketPath, call("ping", {}))).received.includes('"result"'),
      );
      return held;
    },
    (held) => held >= 400,
  );

  onBoth(
    "bus/batch",
    "has one frame answered by thousands",
    ({ socketPath }) => {
      const one = call("ping", {}).trim();
      return exchange(socketPath, `[${Array.from({ length: 5000 }, () => one).join(",")}]\n`);
    },
    ({ received }) => received.split('"pong"').length > 1000,
  );

  onBoth(
    "bus/unread-answers",
    "asks for much and reads nothing, so that the answers pile up (here: 28 MB)",
    async ({ socketPath }) => {
      const socket = createConnection(socketPath);
      let isClosed = false;
      socket.on("error", () => undefined);
      socket.on("close", () => {
        isClosed = true;
      });
      socket.pause();
      for (let id = 0; id < 40; id += 1)
        socket.write(call("get_file", { task_id: "attacker", path: "big.txt" }, id));
      await delay(1_000);
      // A close is told only to those who read.
      socket.resume();
      let bytes = 0;
      socket.on("data", (chunk) => {
        bytes += chunk.length;
      });
      await delay(700);
      socket.destroy();
      return { isClosed, bytes };
    },
    ({ bytes }) => bytes > 27_000_000,
  );

  onBoth(
    "bus/prototype",
    "writes into the prototype of every object of the host's process",
    async ({ socketPath }) => {
      const evil =
        '{"jsonrpc":"2.0","id":1,"method":"log","params":{"message":"x","__proto__":{"polluted":true}}}\n';
      const deep =
        '{"jsonrpc":"2.0","id":1,"method":"log","params":{"message":"x","constructor":{"prototype":{"polluted":true}}}}\n';
      await exchange(socketPath, evil);
      await exchange(socketPath, deep);
      const { received } = await exchange(socketPath, call("ping", {}));
      Reflect.deleteProperty(Object.prototype, "polluted");
      return received;
    },
    (received) => received.includes("polluted"),
  );

  onBoth(
    "bus/stack-trace",
    "is shown paths of the host by an error of its making",
    async ({ socketPath }) => {
      const nested = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
      const texts = [
        "{]\n",
        `{"jsonrpc":"2.0","id":1,"method":"log","params":{"a":${nested}}}\n`,
        call("get_file", { task_id: "attacker", path: "none" }),
        call("toString", {}),
        call("__proto__", {}),
      ];
      const answers = await Promise.all(texts.map((text) => exchange(socketPath, text)));
      return answers.map(({ received }) => received.slice(0, 600));
    },
    (answers) => answers.some((text) => /\bat .*[.](ts|js):\d+|\/node_modules\/|no such file/.test(text)),
  );

  onBoth(
    "bus/log-flood",
    "fills the host's log as fast as it can call (here: 25,000 entries)",
    async (target) => {
      const calls = Array.from({ length: 250 }, () => call("log", { message: "x" }, null).repeat(100));
      const began = performance.now();
      await exchange(target.socketPath, [...calls, call("ping", {}, 7)], (text) => text.includes('"id":7'));
      return { recorded: target.countOf("attacker", "log"), tookMs: performance.now() - began };
    },
    ({ recorded }) => recorded >= 25_000,
  );

  attack({
    id: "bus/slow-frame",
    claim: "keeps a connection with half a call, a byte at a time",
    baseline: NAIVE,
    unprotected: () => drip(open.socketPath),
    // With a limit of 0.3 s instead of 30: the same door, and nobody has to wait.
    async bulkhead() {
      await using door = await openRig(createEcho(), { partialFrameTimeoutMs: 300 });
      return drip(door.socketPath);
    },
    succeeded: (stillOpen) => stillOpen,
  });
});
