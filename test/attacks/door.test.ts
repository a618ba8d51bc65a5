/** The one directory that a task shares with the host: its door (row D3). */
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { createRepository, createRig } from "../support/bulkhead-cli.ts";
import { endRig, SMALL } from "../support/e2e-rig.ts";
import {
  type Evidences,
  idsOf,
  plantScripts,
  python,
  runInBulkhead,
  runInPlainContainer,
  type ScriptAttack,
  scriptAttacks,
} from "./support/script-attacks.ts";

const MOUNTED = "a container with the state directory mounted";
const OWN = "/run/bulkhead";

/** Calls every socket of that name but the task's own. */
const callOthers = (name: string) =>
  `for s in $(find / -type s -name ${name} ! -path ${OWN}/door.sock 2>/dev/null); do curl -s -m 2 --unix-socket $s -d '{"jsonrpc":"2.0","id":1,"method":"ping"}' http://door/rpc | grep . && exit 0; done; exit 1`;

const ATTACKS: readonly ScriptAttack[] = [
  {
    id: "door/other-door",
    claim: "calls through the door of another task, and so in its name",
    baseline: MOUNTED,
    script: callOthers("door.sock"),
  },
  {
    id: "door/supervisor-socket",
    claim: "calls the supervisor through the socket that its owner uses",
    baseline: MOUNTED,
    script: callOthers("supervisor.sock"),
  },
  {
    id: "door/changed-context",
    claim: "changes what it is told about itself, which others read too",
    baseline: MOUNTED,
    script: `echo '{"task":"another"}' > ${OWN}/context.json || echo x >> ${OWN}/run_metadata.json`,
  },
  {
    id: "door/filled-directory",
    claim: "writes files beside the door, on a disk of the host without a limit",
    baseline: MOUNTED,
    script: `head -c 65536 /dev/zero > ${OWN}/fill && test -s ${OWN}/fill`,
  },
  {
    id: "door/closed-to-others",
    claim: "changes the mode of the door, so that nobody can call any more",
    baseline: MOUNTED,
    script: `chmod 0 ${OWN}/door.sock`,
  },
  {
    id: "door/replaced",
    claim: "puts a socket of its own in the place of the door, for others to call",
    baseline: MOUNTED,
    script: python(`
path = "${OWN}/door.sock"
try: os.rename(path, path + ".old")
except OSError as e: print(e); os.remove(path)
s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen(); print("bound")`),
  },
];

const rig = createRig();
const servers: Server[] = [];
const baselines = new Map<string, Evidences>();
let guarded: Evidences;

async function serve(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const server = createServer((_request, response) => response.end("answered"));
  server.listen(path);
  await once(server, "listening");
  servers.push(server);
}

beforeAll(async () => {
  const repository = createRepository(join(rig.root, "repo"), { "README.md": "hello\n" });
  plantScripts(repository, ATTACKS);
  const shared = join(rig.root, "shared");
  for (const name of ["door.sock", "supervisor.sock", "d/1/door.sock"]) await serve(join(shared, name));
  writeFileSync(join(shared, "context.json"), "{}");
  const options = ["--user", "0", "--volume", `${shared}:${OWN}`];
  baselines.set(MOUNTED, await runInPlainContainer(repository, options, idsOf(ATTACKS, MOUNTED)));
  // Another task lives meanwhile, with a door of its own.
  const other = { ...SMALL, id: "other", run: "sleep 3" };
  guarded = await runInBulkhead(rig, repository, { tasks: [other], argv: ["--slots", "2"] });
});

afterAll(async () => {
  for (const server of servers) server.close();
  await endRig(rig);
});

describe("door", () => {
  scriptAttacks(ATTACKS, { baselines, bulkhead: () => guarded });
});
