import { spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ensureToolbox } from "../../../src/sandbox/toolbox.ts";

let root = "";
let options: { cacheDir: string; packageRoot: string };

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "bh-tool-"));
  options = { cacheDir: join(root, "cache"), packageRoot: join(root, "package") };
  await mkdir(join(options.packageRoot, "dist/toolbox"), { recursive: true });
  await mkdir(join(options.packageRoot, "images/bin"), { recursive: true });
  await writeFile(
    join(options.packageRoot, "dist/toolbox/bulkhead-bus.mjs"),
    'console.log("client", process.version);\n',
  );
  await writeFile(
    join(options.packageRoot, "images/bin/bulkhead-bus"),
    '#!/bin/sh\nexec "$(dirname "$0")/node" "$(dirname "$0")/../bulkhead-bus.mjs" "$@"\n',
  );
});
afterEach(() => rm(root, { recursive: true, force: true }));

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

test("holds a Node of its own, the client and its launcher, readable and runnable by anyone, writable by none", async () => {
  const { dir, version } = await ensureToolbox(options);
  expect(dir).toBe(join(options.cacheDir, "toolbox", version));
  expect(await modeOf(dir)).toBe("755");
  expect(await modeOf(join(dir, "bin"))).toBe("755");
  expect(await modeOf(join(dir, "bin/node"))).toBe("555");
  expect(await modeOf(join(dir, "bin/bulkhead-bus"))).toBe("555");
  expect(await modeOf(join(dir, "bulkhead-bus.mjs"))).toBe("444");
  expect((await stat(join(dir, "bin/node"))).nlink).toBe(1);
  const run = spawnSync(join(dir, "bin/bulkhead-bus"), { encoding: "utf8", env: { PATH: "/usr/bin:/bin" } });
  expect(run.stdout).toBe(`client ${process.version}\n`);
});

test("is made once, also by many callers at once, and leaves nothing half-built", async () => {
  const all = await Promise.all(Array.from({ length: 4 }, () => ensureToolbox(options)));
  expect(new Set(all.map(({ dir }) => dir)).size).toBe(1);
  const [first] = all;
  const before = await stat(join(first?.dir ?? "", "bin/node"));
  await ensureToolbox(options);
  expect((await stat(join(first?.dir ?? "", "bin/node"))).ino).toBe(before.ino);
  expect(await readdir(join(options.cacheDir, "toolbox"))).toEqual([first?.version]);
});

test("changed inputs make a new folder and leave the old one to those who have it mounted", async () => {
  const old = await ensureToolbox(options);
  await writeFile(join(options.packageRoot, "dist/toolbox/bulkhead-bus.mjs"), 'console.log("new");\n');
  const fresh = await ensureToolbox(options);
  expect(fresh.version).not.toBe(old.version);
  expect(await readFile(join(old.dir, "bulkhead-bus.mjs"), "utf8")).toContain("client");
  expect(await readFile(join(fresh.dir, "bulkhead-bus.mjs"), "utf8")).toContain("new");
});

test("refuses a Node that no container could run, and says which", async () => {
  const script = join(root, "not-elf");
  await writeFile(script, "#!/bin/sh\n");
  await chmod(script, 0o755);
  await expect(ensureToolbox({ ...options, nodePath: script })).rejects.toMatchObject({
    code: "internal",
    message: expect.stringContaining(script) as string,
    data: { interpreter: null },
  });
});

test("says what to do where the client was never built", async () => {
  await rm(join(options.packageRoot, "dist"), { recursive: true });
  await expect(ensureToolbox(options)).rejects.toMatchObject({ hint: "run `npm run build`" });
});
