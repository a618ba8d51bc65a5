import { createWriteStream, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { packLayers } from "../../../src/workspace/copy/pack-layers.ts";
import {
  bash,
  createTemporaryRepository,
  ODD_FILES,
  type TemporaryRepository,
} from "../../support/temporary-repository.ts";

let repo: TemporaryRepository;
beforeEach(() => {
  repo = createTemporaryRepository("echo 1 > file");
});
afterEach(() => repo.dispose());

/** Makes a layer as bulkhead lays them out, packs the stack and lets GNU tar unpack it. */
async function unpacked(...layers: ReadonlyArray<{ make: string; removed?: string }>): Promise<string> {
  const trees = layers.map(({ make, removed }, index) => {
    const directory = join(repo.root, `layer${index}`);
    mkdirSync(join(directory, "tree"), { recursive: true });
    bash(join(directory, "tree"), make);
    if (removed !== undefined) bash(directory, `printf '${removed}' > removed`);
    return join(directory, "tree");
  });
  const archive = join(repo.root, "layers.tar");
  await pipeline(packLayers(trees, 10001), createWriteStream(archive));
  const target = join(repo.root, "target");
  bash(repo.root, `mkdir ${target}; tar -xf ${archive} -C ${target} --numeric-owner`);
  return target;
}

const FILES = "find . ! -type d -print | LC_ALL=C sort";

test("every name, mode, link, size and time arrives as it is", async () => {
  const listing =
    "find . -printf '%y %m %p %l %s %Ts\\n' | grep -v '^d' | LC_ALL=C sort; find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum";
  const target = await unpacked({
    make: `${ODD_FILES}head -c 700001 /dev/zero > big; printf 'x%.0s' $(seq 512) > block; cd "$(printf 'n%.0s' $(seq 120))"; ln -s "$(printf 't%.0s' $(seq 300))" "$(printf 'l%.0s' $(seq 101))"`,
  });
  const source = join(repo.root, "layer0/tree");
  expect(bash(target, listing)).toBe(bash(source, listing));
  expect(bash(target, "find . -printf '%U:%G\\n' | sort -u")).toBe("10001:10001\n");
});

test("an upper layer hides, replaces and removes as overlayfs would", async () => {
  const base =
    "mkdir -p a/b c d; echo 1 > a/b/1; echo 2 > a/2; echo 3 > c/3; echo 4 > d/4; echo 5 > e; echo 6 > keep";
  const upper = "mkdir -p a e; echo new > a/2; mknod a/b c 0 0; echo file > c; echo in > e/in; mknod d c 0 0";
  const target = await unpacked({ make: upper }, { make: base });
  expect(bash(target, FILES)).toBe("./a/2\n./c\n./e/in\n./keep\n");
  expect(bash(target, "cat a/2 c")).toBe("new\nfile\n");
});

test("a layer made without root says in a list what is gone", async () => {
  const base = "mkdir -p a/b c; echo 1 > a/b/1; echo 2 > a/2; echo 3 > c/3; echo 5 > e";
  const target = await unpacked({ make: "mkdir e; echo in > e/in", removed: "a/b\\0c\\0" }, { make: base });
  expect(bash(target, FILES)).toBe("./a/2\n./e/in\n");
  expect(bash(target, "ls -d a/b c 2>&1 || true")).toContain("cannot access 'a/b'");
});
