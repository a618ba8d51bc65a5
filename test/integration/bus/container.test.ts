import { createHash } from "node:crypto";
import { chmod, copyFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { buildAgent } from "../../../scripts/build-agent.ts";
import { docker, testImage } from "../../support/shell-container.ts";
import { openBusRig } from "../door/door-rig.ts";

/** The Node that runs the tests is not always one that can run in the image; the package's own is. */
const NODE = join(dirname(createRequire(import.meta.url).resolve("node/package.json")), "bin/node");

const SCRIPT = `
set -u
test "$(id -u)" = 10001
bulkhead-bus register puppet 1.0
bulkhead-bus status testing "größe 日本" --percent 10
bulkhead-bus get-file auth bin/x | sha256sum
head -c 100000 /dev/urandom > /tmp/a.bin
bulkhead-bus put-artifact /tmp/a.bin > /dev/null
curl -sS --unix-socket /run/bulkhead/door.sock -d '{"jsonrpc":"2.0","id":7,"method":"ping"}' http://door/rpc
bulkhead-bus raw status '{"state":"x","taskId":"auth"}' 2>/dev/null; echo "spoof: $?"
touch /run/bulkhead/x 2>/dev/null; echo "touch: $?"
rm /run/bulkhead/door.sock 2>/dev/null; echo "rm: $?"
chmod 0600 /run/bulkhead/door.sock 2>/dev/null; echo "chmod: $?"
`;

test("from a real container: uid 10001, no capability, no network, through a read-only directory", async () => {
  await using rig = await openBusRig();
  const content = Buffer.from(Array.from({ length: 50_000 }, (_, index) => (index * 31) % 256));
  rig.port.files.set("auth:bin/x", content);
  const { outFile } = await buildAgent(join(rig.directory, "toolbox.mjs"));
  const launcher = join(rig.directory, "bulkhead-bus");
  await copyFile(new URL("../../../images/bin/bulkhead-bus", import.meta.url), launcher);
  for (const file of [rig.directory, launcher, outFile]) await chmod(file, 0o755);
  const mount = (source: string, target: string) => ({
    Type: "bind" as const,
    Source: source,
    Target: target,
    ReadOnly: true,
  });
  const container = await docker.createContainer({
    Image: await testImage(),
    Entrypoint: [],
    Cmd: ["sh", "-c", SCRIPT],
    User: "10001:10001",
    Env: ["PATH=/opt/bulkhead/bin:/usr/local/bin:/usr/bin:/bin"],
    NetworkDisabled: true,
    Labels: { "bulkhead.test": "bus-container" },
    HostConfig: {
      NetworkMode: "none",
      Init: true,
      CapDrop: ["ALL"],
      ReadonlyRootfs: true,
      SecurityOpt: ["no-new-privileges:true"],
      Tmpfs: { "/tmp": "rw,mode=1777" },
      Mounts: [
        mount(rig.directory, "/run/bulkhead"),
        mount(outFile, "/opt/bulkhead/bulkhead-bus.mjs"),
        mount(launcher, "/opt/bulkhead/bin/bulkhead-bus"),
        mount(NODE, "/opt/bulkhead/bin/node"),
      ],
    },
  });
  try {
    const stream = await container.attach({ stream: true, stdout: true, stderr: true });
    const output = new PassThrough();
    container.modem.demuxStream(stream, output, output);
    stream.once("end", () => output.end());
    let text = "";
    output.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8");
    });
    await container.start();
    const { StatusCode } = (await container.wait()) as { StatusCode: number };
    const lines = text.trimEnd().split("\n");
    expect({ StatusCode, lines }).toEqual({
      StatusCode: expect.any(Number),
      lines: [
        expect.stringContaining(createHash("sha256").update(content).digest("hex")),
        '{"jsonrpc":"2.0","id":7,"result":{"pong":true}}',
        "spoof: 1",
        "touch: 1",
        "rm: 1",
        "chmod: 1",
      ],
    });
    const { told } = rig.port;
    expect(told).toContainEqual(["register", expect.anything(), { name: "puppet", version: "1.0" }]);
    expect(told).toContainEqual([
      "status",
      expect.anything(),
      { state: "testing", message: "größe 日本", percent: 10 },
    ]);
    const artifact = told.find(([what]) => what === "putArtifact");
    expect(Buffer.from(String(artifact?.[3]), "base64")).toHaveLength(100_000);
    for (const [, caller] of told) expect(caller.taskId).toBe("docs");
  } finally {
    await container.remove({ force: true, v: true });
  }
});
