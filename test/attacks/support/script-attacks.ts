/**
 * Attacks that are shell scripts. All of a family run one after the other in one container of each unprotected set-up and in one task of
 * a real run: a container for each would take minutes.
 */
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { commitAll, type Rig } from "../../support/bulkhead-cli.ts";
import { expectCode, outputOf, writePlan } from "../../support/e2e-rig.ts";
import { attack } from "./attack.ts";

export interface ScriptAttack {
  readonly id: string;
  readonly claim: string;
  /** Name of the unprotected set-up. */
  readonly baseline: string;
  /** Run by sh in the workspace; ends with 0 where the attack has worked, and prints what it got. */
  readonly script: string;
  /** Where the exit code does not tell. */
  readonly succeeded?: (evidence: Evidence) => boolean;
}

export interface Evidence {
  readonly code: number;
  readonly output: string;
}

/** What one runner answered: evidence by attack id. */
export type Evidences = ReadonlyMap<string, Evidence>;

/** Ends with 0 where the code printed a line, and never with a stack trace that looks like one. */
export function python(code: string): string {
  return `python3 - <<'END_OF_CODE'\nimport ctypes, os, socket, sys, time\nlibc = ctypes.CDLL(None, use_errno=True)\n${code.trim()}\nEND_OF_CODE`;
}

/** Asks for a system call; where the kernel did it or would have (bad pointer, bad descriptor), it was not refused. */
export function systemCall(number: number, ...args: readonly (number | string)[]): string {
  return python(`
r = libc.syscall(${[number, ...args].join(", ")})
e = ctypes.get_errno()
print("result", r, "errno", e)
sys.exit(0 if r >= 0 or e in (9, 14, 22) else 1)`);
}

/** Each attack in a session of its own, ended with all it has started. One line of JSON each. */
const RUNNER = `
import json, os, signal, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
plan = json.load(open(os.path.join(here, "plan.json")))
for name in sys.argv[1:] or list(plan):
    child = subprocess.Popen(["sh", "-c", plan[name]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, code = child.communicate(timeout=15)[0], child.returncode
    except subprocess.TimeoutExpired:
        output, code = b"did not end", -1
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    print(json.dumps({"id": name, "code": code, "output": output[-1500:].decode("latin1")}), flush=True)
`;

/** Puts the runner and the scripts into the repository, as a dependency with a grudge would be. `prelude` goes before each script. */
export function plantScripts(repository: string, attacks: readonly ScriptAttack[], prelude = ""): void {
  mkdirSync(join(repository, ".attacks"), { recursive: true });
  writeFileSync(join(repository, ".attacks/run.py"), RUNNER);
  const plan = Object.fromEntries(attacks.map(({ id, script }) => [id, prelude + script]));
  writeFileSync(join(repository, ".attacks/plan.json"), JSON.stringify(plan));
  commitAll(repository, "attacks");
}

/** The image of runs by default; the unprotected containers get the same, or another tool might make the difference. */
export const IMAGE = process.env["BULKHEAD_TEST_IMAGE"] ?? "bulkhead/agent:latest";

const CAPABILITIES =
  "SYS_ADMIN SYS_PTRACE SYS_RAWIO SYS_MODULE SYSLOG MKNOD DAC_READ_SEARCH NET_ADMIN NET_RAW".split(" ");

/**
 * As good as `--privileged`, with the host's namespaces. Spelled out, since that option fails where the engine itself lacks a
 * capability.
 */
export const PRIVILEGED_OPTIONS: readonly string[] = [
  ...["--user", "0", "--pid", "host", "--ipc", "host", "--uts", "host", "--network", "host"],
  ...CAPABILITIES.flatMap((name) => ["--cap-add", name]),
  ...["--security-opt", "seccomp=unconfined", "--security-opt", "systempaths=unconfined"],
  ...["--security-opt", "apparmor=unconfined", "--device-cgroup-rule", "b *:* rwm"],
  ...["--device-cgroup-rule", "c *:* rwm"],
  ...["--volume", "/dev:/dev", "--volume", "/sys:/sys"],
];

/** Runs those attacks in a container made with `docker run` and the given options, the repository mounted as it is. */
export async function runInPlainContainer(
  repository: string,
  options: readonly string[],
  ids: readonly string[],
  before: readonly string[] = [],
): Promise<Evidences> {
  const mounts = ["--volume", `${repository}:/workspace`, "--workdir", "/workspace"];
  const command = [...before, "python3", "/workspace/.attacks/run.py", ...ids];
  const label = ["--label", "bulkhead.test=attacks"];
  return runBare("docker", ["run", "--rm", ...label, ...mounts, ...options, IMAGE, ...command], {});
}

/** Runs those attacks as a child process of this one, with the given environment: an agent started by hand. */
export function runOnHost(
  repository: string,
  ids: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Evidences> {
  return runBare("python3", [join(repository, ".attacks/run.py"), ...ids], { env, cwd: repository });
}

function runBare(
  program: string,
  argv: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string },
): Promise<Evidences> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, argv, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    let complaints = "";
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    child.stderr.setEncoding("utf8").on("data", (part: string) => {
      complaints += part;
    });
    child.once("error", reject);
    child.once("close", () => {
      const evidences = parse(text);
      if (evidences.size > 0) resolve(evidences);
      else reject(new Error(`${program} ${argv.join(" ")} said nothing of use: ${text}${complaints}`));
    });
  });
}

/** Runs all attacks of the repository as one task of a real run and reads its log. */
export async function runInBulkhead(
  rig: Rig,
  repository: string,
  options: {
    readonly caps?: object;
    readonly env?: NodeJS.ProcessEnv;
    /** Tasks beside the one that attacks. */
    readonly tasks?: readonly object[];
    readonly argv?: readonly string[];
    /** Only these attacks; all unless set. */
    readonly ids?: readonly string[];
  } = {},
): Promise<Evidences> {
  const plan = writePlan(rig, {
    tasks: [
      ...(options.tasks ?? []),
      {
        id: "attacker",
        run: `python3 .attacks/run.py ${(options.ids ?? []).join(" ")}; rm -rf .attacks`,
        timeout: "120s",
        caps: { memory: "512m", ...options.caps },
      },
    ],
  });
  const ran = await rig.run(["run", plan, ...(options.argv ?? [])], {
    cwd: repository,
    ...(options.env === undefined ? {} : { env: options.env }),
  });
  if (ran.code !== 0 && ran.code !== 1) expectCode(ran, 0);
  const evidences = parse(await outputOf(rig, "attacker"));
  if (evidences.size === 0) throw new Error(`the attacker said nothing: ${ran.stdout}${ran.stderr}`);
  return evidences;
}

function parse(text: string): Evidences {
  const found = new Map<string, Evidence>();
  for (const line of text.split("\n")) {
    if (!line.startsWith('{"id": ')) continue;
    const { id, ...evidence } = JSON.parse(line) as Evidence & { id: string };
    found.set(id, evidence);
  }
  return found;
}

/** Registers a test for each attack; `baselines` and `bulkhead` are asked when the tests run. */
export function scriptAttacks(
  attacks: readonly ScriptAttack[],
  results: { readonly baselines: Map<string, Evidences>; readonly bulkhead: () => Evidences },
): void {
  const of = (evidences: Evidences | undefined, id: string): Evidence => {
    const evidence = evidences?.get(id);
    if (evidence === undefined) throw new Error(`no evidence for ${id}`);
    return evidence;
  };
  for (const { id, claim, baseline, succeeded = endsWithZero } of attacks) {
    attack<Evidence>({
      id,
      claim,
      baseline,
      unprotected: () => of(results.baselines.get(baseline), id),
      bulkhead: () => of(results.bulkhead(), id),
      succeeded,
    });
  }
}

/** Ids of the attacks that name a baseline. */
export function idsOf(attacks: readonly ScriptAttack[], baseline: string): string[] {
  return attacks.filter((one) => one.baseline === baseline).map(({ id }) => id);
}

function endsWithZero({ code }: Evidence): boolean {
  return code === 0;
}
