/**
 * Canaries through everything an agent can write to, with the built command line and real containers (rows P14, D4). The agent has the
 * value because the repository holds it backwards: nothing else could bring it in.
 */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Docker from "dockerode";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunViewJson } from "../../../src/observe/run-view-json.ts";
import { type CliResult, createRepository, createRig, git, type Rig } from "../../support/bulkhead-cli.ts";
import { endRig, readEvents, SMALL, statusOf, taskOf, waitFor, writePlan } from "../../support/e2e-rig.ts";

const CANARY = `canary/${randomBytes(9).toString("hex")}+x`;
const UNTOLD = `untold-${randomBytes(9).toString("hex")}`;
const TOKEN_BODY = randomBytes(18).toString("hex");
const TOKEN = `ghp${"_"}${TOKEN_BODY}`;
const backwards = (text: string): string => [...text].reverse().join("");

/** What must not be found anywhere: the value, its encodings, and the token's body. */
const FORMS: readonly (readonly [string, string])[] = [
  ["plain", CANARY],
  ["base64", Buffer.from(CANARY).toString("base64").slice(0, -4)],
  ["percent", encodeURIComponent(CANARY)],
  ["token", TOKEN_BODY],
  ["not configured", UNTOLD],
];

const LEAK = `
c=$(python3 -c 'print(open("seed").read().strip()[::-1])')
t=$(python3 -c 'print(open("token-seed").read().strip()[::-1])')
tr '\\0' '\\n' </proc/1/environ; env
echo "whole $c and $t"
echo "on stderr $c" >&2
python3 - "$c" "$t" <<'END'
import base64, os, sys, urllib.parse
for text in sys.argv[1:]:
    for part in text:
        os.write(1, part.encode())
    os.write(1, b"\\n")
    os.write(1, base64.b64encode(text.encode()) + b"\\n")
    os.write(1, urllib.parse.quote(text, safe="").encode() + b"\\n")
END
bulkhead-bus register "agent $c" "v $t"
bulkhead-bus status working "$c"
bulkhead-bus log "$c $t"
bulkhead-bus error "not so bad: $c"
printf 'notes: %s %s\\n' "$c" "$t" >/tmp/notes.txt
bulkhead-bus put-artifact /tmp/notes.txt
printf '\\0\\1\\377%s\\0' "$c" >/tmp/notes.bin
bulkhead-bus put-artifact /tmp/notes.bin
printf x >"/tmp/$t"
bulkhead-bus put-artifact "/tmp/$t" && echo "the name was taken"
printf 'a\\nkey = "%s"\\ntoken = %s\\n' "$c" "$t" >config.txt
exit 0
`;

const TASKS = [
  { id: "leak", run: "sh leak.sh" },
  {
    id: "fatal",
    run: `bulkhead-bus error "no access with $(python3 -c 'print(open("seed").read().strip()[::-1])')" --fatal`,
  },
  {
    id: "special",
    run: `mkfifo "$(python3 -c 'print(open("token-seed").read().strip()[::-1])')"`,
  },
  { id: "innocent", run: "echo fine >fine.txt" },
  { id: "hold", run: "echo holding; sleep 300" },
];

describe("canaries", () => {
  let rig: Rig;
  let repository: string;
  let ran: CliResult;
  let status: RunViewJson;
  let inspected: string;

  beforeAll(async () => {
    rig = createRig();
    repository = createRepository(join(rig.root, "repo"), {
      "bulkhead.yaml": "secrets: [CANARY_KEY]\n",
      "leak.sh": LEAK,
      seed: `${backwards(CANARY)}\n`,
      "token-seed": `${backwards(TOKEN)}\n`,
    });
    const plan = writePlan(rig, { defaults: SMALL, tasks: TASKS });
    const env = { CANARY_KEY: CANARY, UNTOLD_KEY: UNTOLD };
    const running = rig.run(["run", plan, "--slots", "8", "--output"], { cwd: repository, env });
    const started = await waitFor("a container to look at", () =>
      readEvents(rig)
        .map(({ event }) => event)
        .find((event) => event.type === "sandbox-started" && event.taskId === "hold"),
    );
    if (started.type !== "sandbox-started") throw new Error("another event");
    const docker = new Docker({ socketPath: "/var/run/docker.sock" });
    const container = docker.getContainer(started.containerId);
    inspected = JSON.stringify([await container.inspect(), await container.top()]);
    await waitFor("the others to end", () =>
      ["leak", "fatal", "special", "innocent"].every((id) =>
        readEvents(rig).some(
          ({ event }) =>
            (event.type === "task-succeeded" || event.type === "task-failed") && event.taskId === id,
        ),
      ),
    );
    await rig.run(["cancel", "latest", "hold"]);
    ran = await running;
    status = await statusOf(rig);
  });
  afterAll(() => endRig(rig));

  const expectNone = (what: string, bytes: Buffer | string): void => {
    const text = typeof bytes === "string" ? bytes : bytes.toString("latin1");
    expect(text.length, what).toBeGreaterThan(0);
    for (const [form, value] of FORMS) expect(text.includes(value), `${form} in ${what}`).toBe(false);
  };

  test("the container knows nothing of the client's environment", () => {
    expectNone("inspect", inspected);
    expect(inspected).not.toContain("CANARY_KEY");
    expect(inspected).not.toContain("UNTOLD_KEY");
  });

  test("output and live output have marks in their place", async () => {
    expectNone("live output", ran.stdout + ran.stderr);
    const logged = await rig.run(["logs", "latest", "leak"]);
    expectNone("logs", logged.stdout);
    expect(logged.stdout).toContain("whole [redacted] and ghp_[redacted: github-token]\n");
    expect(logged.stdout).toContain("on stderr [redacted]\n");
    // Whole, byte by byte, base64, percent-encoded.
    expect(logged.stdout.match(/\[redacted\]/g)?.length).toBeGreaterThanOrEqual(5);
    expect(logged.stdout).not.toContain("_KEY");
    expect(logged.stdout).not.toContain("the name was taken");
  });

  test("events, status and report", async () => {
    const events = readEvents(rig);
    expectNone("events", JSON.stringify(events));
    expectNone("status", JSON.stringify(status));
    expectNone("report", (await rig.run(["status", "latest"])).stdout);
    expect(JSON.stringify(events)).toContain("ghp_[redacted: github-token]");
    expect(taskOf(status, "leak").agent).toEqual({
      name: "agent [redacted]",
      version: "v ghp_[redacted: github-token]",
    });
    expect(taskOf(status, "fatal").failure).toMatchObject({
      reason: "agent-error",
      data: { message: "no access with [redacted]" },
    });
    expect(taskOf(status, "special").failure).toMatchObject({
      reason: "result-refused",
      data: { problems: [{ path: "ghp_[redacted: github-token]" }] },
    });
  });

  test("artifacts are stored without it, and say so", () => {
    const dir = join(rig.stateDir, "runs", status.run_id ?? "", "leak", "1", "artifacts");
    expect(readdirSync(dir).sort()).toEqual(["notes.bin", "notes.txt"]);
    expect(readFileSync(join(dir, "notes.txt"), "utf8")).toBe(
      "notes: [redacted] ghp_[redacted: github-token]\n",
    );
    expect(readFileSync(join(dir, "notes.bin"), "latin1")).toBe("\0\u0001\u00ff[redacted]\0");
    const stored = readEvents(rig).flatMap(({ event }) => (event.type === "artifact-stored" ? [event] : []));
    expect(stored.map(({ name, redacted }) => [name, redacted])).toEqual([
      ["notes.txt", ["configured-secret", "github-token"]],
      ["notes.bin", ["configured-secret"]],
    ]);
    const warnings = status.warnings.map(({ message }) => message);
    expect(warnings).toContain("secrets were taken out of artifact notes.bin: configured-secret");
  });

  test("no byte of it lies in the state directory", () => {
    const files = execFileSync("find", [rig.stateDir, "-type", "f", "-size", "+0"], { encoding: "utf8" })
      .trim()
      .split("\n");
    expect(files.map((file) => file.slice(rig.stateDir.length + 1))).toEqual(
      expect.arrayContaining(["bulkhead.db", "supervisor.log"]),
    );
    for (const file of files) expectNone(file, readFileSync(file));
  });

  test("the patch is flagged, not changed; apply refuses it until told otherwise", async () => {
    const secrets = [
      { path: "config.txt", rule: "configured-secret", line: 2 },
      { path: "config.txt", rule: "github-token", line: 3 },
    ];
    expect(taskOf(status, "leak").patch?.secrets).toEqual(secrets);
    expect(taskOf(status, "innocent").patch?.secrets).toEqual([]);
    expect(ran.stdout).toContain("! leak: config.txt:2 configured-secret\n");

    const diff = await rig.run(["diff", "latest", "leak"]);
    expect(diff.stderr).toContain("warning: leak has what looks like a secret: config.txt:3 github-token\n");
    expect(diff.stdout).toContain(`+key = "${CANARY}"`);

    const refused = await rig.run(["apply", "latest", "-y"]);
    expect(refused.code, refused.stdout).toBe(1);
    expect(refused.stderr).toContain("leak: config.txt:2 configured-secret");
    expect(refused.stderr).toContain("--allow secrets");
    expectNone("refusal", refused.stderr);
    expect(git(repository, "status", "--porcelain")).toBe("");

    const partly = await rig.run(["apply", "latest", "innocent", "-y"]);
    expect(partly.code, partly.stderr).toBe(0);
    expect(existsSync(join(repository, "fine.txt"))).toBe(true);
    const allowed = await rig.run(["apply", "latest", "leak", "--allow", "secrets", "-y"]);
    expect(allowed.code, allowed.stderr).toBe(0);
    expect(readFileSync(join(repository, "config.txt"), "utf8")).toContain(CANARY);
  });

  test("a plan that holds the value of a secret is not taken", async () => {
    for (const task of [
      { id: "in-argument", run: `echo ${CANARY}` },
      { id: "in-environment", run: "true", env: { KEY: CANARY } },
    ]) {
      const plan = writePlan(rig, { defaults: SMALL, tasks: [task] }, `${task.id}.json`);
      const result = await rig.run(["run", plan], { cwd: repository, env: { CANARY_KEY: CANARY } });
      expect(result.code, result.stderr).toBe(2);
      expect(result.stderr).toContain(`task ${task.id} holds the value of a configured secret`);
      expectNone("refusal", result.stderr);
    }
    expect(readEvents(rig).some(({ event }) => event.type === "run-submitted")).toBe(true);
    expectNone("log", readFileSync(join(rig.stateDir, "bulkhead.db")));
  });
});
