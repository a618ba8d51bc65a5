import { randomBytes } from "node:crypto";
import Docker from "dockerode";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RunnerError } from "../../../src/model/runner-error.ts";
import { checkImage, ensureImage } from "../../../src/sandbox/docker/build-image.ts";
import { findEngine } from "../../../src/sandbox/docker/find-engine.ts";

const tag = `bulkhead-test/image:${randomBytes(4).toString("hex")}`;
let endpoint = "";
let docker: Docker;
const baseImage = "bulkhead/agent:latest";

beforeAll(async () => {
  const found = await findEngine(process.env);
  if (found.endpoint === null) throw new Error(`these tests need an engine: ${JSON.stringify(found.tried)}`);
  endpoint = found.endpoint;
  docker = new Docker({ socketPath: endpoint.replace("unix://", "") });
  // An image with the tools makes a base that needs no network; setup has built this one.
  expect(
    await checkImage({ endpoint, tag: baseImage, baseImage: null }),
    "run `npm run setup` first",
  ).not.toBe("missing");
});
afterAll(async () => {
  await docker
    .getImage(tag)
    .remove({ force: true })
    .catch((cause: { statusCode?: number }) => {
      if (cause.statusCode !== 404) throw cause;
    });
});

async function runInside(script: string): Promise<string> {
  const container = await docker.createContainer({
    Image: tag,
    Cmd: ["sh", "-c", script],
    // One plain stream instead of framed ones.
    Tty: true,
    NetworkDisabled: true,
    HostConfig: { NetworkMode: "none" },
  });
  try {
    await container.start();
    await container.wait();
    const log = await container.logs({ stdout: true, stderr: true });
    return log.toString("utf8").replaceAll("\r\n", "\n");
  } finally {
    await container.remove({ force: true });
  }
}

test("builds once, then finds it up to date, and the image is what attempts need", async () => {
  const lines: string[] = [];
  const request = { endpoint, tag, baseImage, report: (line: string) => lines.push(line) };
  expect(await checkImage(request)).toBe("missing");
  const built = await ensureImage(request);
  expect(built).toMatchObject({ tag, how: "built", id: expect.stringMatching(/^sha256:/) as string });
  expect(lines.some((line) => line.includes("Step 3/"))).toBe(true);

  const again = await ensureImage(request);
  expect(again).toEqual({ ...built, how: "present" });
  expect(await checkImage(request)).toBe("present");
  expect(await checkImage({ ...request, baseImage: "another:base" })).toBe("outdated");

  const inside = await runInside(
    "id -u; id -g; pwd; stat -c %u:%a /workspace /home/agent; echo $LANG $HOME; for p in git socat curl jq python3 timeout bulkhead-relay; do command -v $p >/dev/null && echo has $p; done; ls /etc/ssl/certs/ca-certificates.crt",
  );
  expect(inside.trim().split("\n")).toEqual([
    "10001",
    "10001",
    "/workspace",
    "10001:755",
    "10001:755",
    "C.UTF-8 /home/agent",
    ...["git", "socat", "curl", "jq", "python3", "timeout", "bulkhead-relay"].map((name) => `has ${name}`),
    "/etc/ssl/certs/ca-certificates.crt",
  ]);
});

test("a rebuild takes the tag over and leaves no nameless image behind", async () => {
  // What a setup of another version would have left under this name.
  const container = await docker.createContainer({ Image: baseImage, Cmd: ["true"], NetworkDisabled: true });
  const stale = (await container.commit({
    repo: "bulkhead-test/image",
    tag: tag.split(":")[1] ?? "",
    changes: ["LABEL bulkhead.image.version=stale"],
  })) as { Id: string };
  await container.remove();
  const request = { endpoint, tag, baseImage, report: () => undefined };
  expect(await checkImage(request)).toBe("outdated");
  expect(await ensureImage(request)).toMatchObject({ how: "built" });
  await expect(docker.getImage(stale.Id).inspect()).rejects.toMatchObject({ statusCode: 404 });
});

test("the relay carries TCP inside to the socket of the door", async () => {
  const echoed = await runInside(
    [
      "export BULKHEAD_DOOR=/tmp/door.sock",
      "socat UNIX-LISTEN:/tmp/door.sock,fork EXEC:cat &",
      // The door is there before the relay, as in an attempt; the relay's own listener comes up in its own time.
      "for i in $(seq 200); do [ -S /tmp/door.sock ] && break; sleep 0.05; done",
      "bulkhead-relay &",
      'for i in $(seq 100); do out=$(echo through | socat -t 2 - TCP:127.0.0.1:7070 2>/dev/null); [ -n "$out" ] && break; sleep 0.05; done; echo "$out"',
    ].join("\n"),
  );
  expect(echoed.trim()).toBe("through");
});

test("a base the person named that cannot be had is an error that names it, never another base", async () => {
  const request = {
    endpoint,
    tag: `${tag}x`,
    baseImage: "bulkhead-test/no-such-base:1",
    report: () => undefined,
  };
  const failure = await ensureImage(request).catch((cause: unknown) => cause);
  expect(failure).toBeInstanceOf(RunnerError);
  expect(failure).toMatchObject({ code: "image-missing", data: { base: "bulkhead-test/no-such-base:1" } });
  expect(await checkImage(request)).toBe("missing");
});
