import { PassThrough } from "node:stream";
import Docker from "dockerode";

/** The engine's API without bulkhead in between: what a test looks with. */
export const docker = new Docker({ socketPath: "/var/run/docker.sock" });

const NO_COPY = { NoCopy: true } as NonNullable<Docker.MountSettings["VolumeOptions"]>;

/** An image that the engine has, with git in it. */
export async function testImage(): Promise<string> {
  const wanted = [process.env["BULKHEAD_TEST_IMAGE"], "bulkhead/agent:latest"];
  const found = (await docker.listImages()).flatMap((image) => image.RepoTags ?? []);
  const image = wanted.find((tag) => tag !== undefined && found.includes(tag));
  if (image === undefined) throw new Error(`the engine has none of ${wanted.join(", ")}: npm run setup`);
  return image;
}

/** Runs a script as the agent's uid in a container with `volume` at /workspace; returns when the container is removed. */
export async function runInVolume(options: {
  readonly image: string;
  readonly volume: string;
  readonly script: string;
  readonly labels: Readonly<Record<string, string>>;
}): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const container = await docker.createContainer({
    Image: options.image,
    Cmd: ["bash", "-euc", options.script],
    Entrypoint: [],
    User: "10001:10001",
    WorkingDir: "/workspace",
    Env: ["HOME=/tmp", "LC_ALL=C.UTF-8"],
    NetworkDisabled: true,
    Labels: { ...options.labels },
    HostConfig: {
      NetworkMode: "none",
      CapDrop: ["ALL"],
      Tmpfs: { "/tmp": "rw,mode=1777" },
      // As bulkhead does: no copy, for which the engine would mount the volume twice.
      Mounts: [{ Type: "volume", Source: options.volume, Target: "/workspace", VolumeOptions: NO_COPY }],
    },
  });
  try {
    const stream = await container.attach({ stream: true, stdout: true, stderr: true });
    const out = new PassThrough();
    const errors = new PassThrough();
    container.modem.demuxStream(stream, out, errors);
    stream.once("end", () => {
      out.end();
      errors.end();
    });
    const texts = Promise.all([collect(out), collect(errors)]);
    await container.start();
    const { StatusCode } = (await container.wait()) as { StatusCode: number };
    const [stdout, stderr] = await texts;
    return { exitCode: StatusCode, stdout, stderr };
  } finally {
    await container.remove({ force: true, v: true });
  }
}

/** Text of a stream, one character per byte. */
async function collect(stream: PassThrough): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("latin1");
}
