import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { formatRunId, taskIdSchema } from "../../../src/model/ids.ts";
import type { FileFilter } from "../../../src/model/task.ts";
import { openObjectStore } from "../../../src/workspace/object-store.ts";
import { mountForReading, unmount } from "../../../src/workspace/overlay/mounts.ts";
import type { ObjectStore, Snapshot } from "../../../src/workspace/workspace.ts";
import {
  ALL_FILES,
  bash,
  createTemporaryRepository,
  ODD_FILES,
  type TemporaryRepository,
} from "../../support/temporary-repository.ts";

let repo: TemporaryRepository;
let store: ObjectStore;
let head: string;

beforeEach(async () => {
  repo = createTemporaryRepository(ODD_FILES);
  repo.sh("git mv later-attributes .gitattributes");
  head = repo.commit("attributes");
  store = await openObjectStore({ cacheDir: repo.cacheDir, repository: repo.repository });
  await store.importCommit(repo.repository, head, 1);
});
afterEach(() => repo.dispose());

/** A snapshot of `head`, or of patches on it, which must come about. */
async function snapshot(
  over: Partial<FileFilter> = {},
  parents: Record<string, string> = {},
): Promise<Snapshot> {
  const made = await trySnapshot(over, parents);
  if (!made.ok) throw new Error(JSON.stringify(made.error));
  return made.value;
}

function trySnapshot(over: Partial<FileFilter>, parents: Record<string, string>) {
  return store.snapshot({
    baseCommit: head,
    parents: Object.entries(parents).map(([id, commit]) => ({ taskId: taskIdSchema.parse(id), commit })),
    repository: repo.repository,
    filter: { ...ALL_FILES, ...over },
  });
}

/** Runs a script as the agent in the stacked layers, mounted read-only. */
async function inside(made: Snapshot, script: string): Promise<string> {
  const target = join(repo.root, "seen");
  mkdirSync(target, { recursive: true });
  await mountForReading([...made.layers, ...(made.layers.length === 1 ? [emptyLayer()] : [])], target);
  try {
    return bash(target, `setpriv --reuid 10001 --regid 10001 --clear-groups bash -euc "$SCRIPT"`, {
      SCRIPT: script,
      HOME: "/nonexistent",
    });
  } finally {
    await unmount(target);
  }
}

/** overlayfs wants two lowers where there is no upper. */
function emptyLayer(): string {
  const layer = join(repo.root, "empty-layer");
  mkdirSync(layer, { recursive: true });
  return layer;
}

/** Commits what `script` does to `from`, in the repository, and brings the commit into the store as a patch would be. */
async function patch(script: string, from = head): Promise<string> {
  repo.sh(`git checkout -q --detach -f ${from} && git clean -fdq`);
  repo.sh(script);
  const commit = repo.commit("patch");
  bash(
    repo.root,
    `git --git-dir=${store.gitDir} fetch -q --no-tags file://${repo.repository} ${commit}:refs/test/${commit}`,
  );
  return commit;
}

/** Everything but `.git`: type, mode, owner, name, link target, hash. */
const LISTING = `find . -path ./.git -prune -o -printf '%y %m %U:%G %p %l\\n' | LC_ALL=C sort; find . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum`;

/** What git itself checks out of a commit, without conversions, given to the agent. */
function expected(commit: string): string {
  const oracle = join(repo.root, `oracle-${commit}`);
  bash(
    repo.root,
    `umask 022; mkdir ${oracle}; export GIT_INDEX_FILE=${oracle}.index; g="git --git-dir=${repo.repository}/.git --work-tree=${oracle}"
     mkdir -p ${repo.repository}/.git/info; echo '* !text !eol !ident !working-tree-encoding' > ${repo.repository}/.git/info/attributes
     $g read-tree ${commit}; $g checkout-index -a; rm ${repo.repository}/.git/info/attributes; chown -hR 10001:10001 ${oracle}`,
  );
  return bash(oracle, LISTING);
}

describe("base trees", () => {
  test("hold the commit's bytes, modes, links and names, owned by the agent", async () => {
    const made = await snapshot();
    expect(made.commit).toBe(head);
    expect(made.insideHead).toBe(head);
    expect(await inside(made, LISTING)).toBe(expected(head));
  });

  test("are clean to git, which reads no file to find that out", async () => {
    const made = await snapshot();
    // diff-files goes by the recorded stats alone; a file as new as the index would be read all the same.
    const seen = await inside(
      made,
      `git status --porcelain=v2 --branch; git diff-files --name-only; find . -path ./.git -prune -o -newer .git/index -print
       git log --format=%H; git fsck --no-dangling; git rev-parse --is-shallow-repository`,
    );
    expect(seen).toBe(`# branch.oid ${head}\n# branch.head work\n${head}\ntrue\n`);
    const newest = Number(
      await inside(made, "find . -path ./.git -prune -o -type f -printf '%T@\\n' | sort -n | tail -1"),
    );
    expect(statSync(join(made.layers[0] ?? "", ".git/index")).mtimeMs / 1000 - newest).toBeGreaterThan(1);
  });

  test("have an own repository: no remote, hook, alternate, reflog or path of the host", async () => {
    const made = await snapshot();
    const git = join(made.layers[0] ?? "", ".git");
    expect(existsSync(join(git, "hooks"))).toBe(false);
    expect(existsSync(join(git, "objects/info/alternates"))).toBe(false);
    expect(readFileSync(join(git, "config"), "utf8")).not.toMatch(/remote|include|\//);
    expect(bash(git, `grep -rl '${repo.root}' . || true`)).toBe("");
    expect(statSync(join(git, "index")).uid).toBe(10001);
  });

  test("bring history on request", async () => {
    await store.importCommit(repo.repository, head, 0);
    expect(await inside(await snapshot({ history: 0 }), "git log --format=%s; git fsck")).toBe(
      "attributes\nfirst\n",
    );
    expect(await inside(await snapshot(), "git log --format=%s; git fsck")).toBe("attributes\n");
  });

  test("are built once for twenty callers, and again when the cache was cleared", async () => {
    const made = await Promise.all(Array.from({ length: 20 }, () => snapshot()));
    expect(new Set(made.map((one) => one.layers[0])).size).toBe(1);
    const second = await openObjectStore({ cacheDir: repo.cacheDir, repository: repo.repository });
    const inode = statSync(made[0]?.layers[0] ?? "").ino;
    await second.snapshot({ baseCommit: head, parents: [], repository: repo.repository, filter: ALL_FILES });
    expect(statSync(made[0]?.layers[0] ?? "").ino).toBe(inode);
    bash(repo.cacheDir, "rm -rf trees");
    const again = await snapshot();
    expect(existsSync(again.manifestPath)).toBe(true);
  });

  test("of an earlier boot are checked, and built again when a file lost its content", async () => {
    const made = await snapshot();
    const tree = made.layers[0] ?? "";
    writeFileSync(join(tree, "../boot-id"), "an earlier boot");
    const inode = statSync(tree).ino;
    const reopened = () => openObjectStore({ cacheDir: repo.cacheDir, repository: repo.repository });
    const request = { baseCommit: head, parents: [], repository: repo.repository, filter: ALL_FILES };
    await (await reopened()).snapshot(request);
    expect(statSync(tree).ino).toBe(inode);
    writeFileSync(join(tree, "../boot-id"), "an earlier boot");
    writeFileSync(join(tree, "src/a.txt"), "");
    await (await reopened()).snapshot(request);
    expect(readFileSync(join(tree, "src/a.txt"), "utf8")).toBe("a\n");
  });

  test("leave nothing half-built: the failure is told, and the next call tries again", async () => {
    const trees = join(repo.cacheDir, "trees");
    const pack = bash(
      store.gitDir,
      "ls objects/pack/*.pack 2>/dev/null || true; find objects -type f -name '*' -path '*/??/*'",
    ).trim();
    bash(store.gitDir, "mv objects ../hidden; mkdir objects");
    await expect(snapshot()).rejects.toMatchObject({ code: "git-failed" });
    expect(bash(trees, "ls | grep -v lock || true")).toBe("");
    mkdirSync(join(trees, "leftover"));
    bash(store.gitDir, "rm -r objects; mv ../hidden objects");
    expect(pack).not.toBe("");
    expect((await snapshot()).commit).toBe(head);
  });

  test("ignore the umask of the process", async () => {
    const before = process.umask(0o077);
    try {
      expect(await inside(await snapshot(), LISTING)).toBe(expected(head));
    } finally {
      process.umask(before);
    }
  });
});

describe("manifest", () => {
  test("lists every file with mode, blob and size; other bytes in base64", async () => {
    const made = await snapshot();
    const manifest = JSON.parse(readFileSync(made.manifestPath, "utf8"));
    expect(manifest.commit).toBe(head);
    const listed = manifest.files.map((file: Record<string, string>) => {
      const bytes =
        file["path"] === undefined
          ? Buffer.from(file["pathBase64"] ?? "", "base64")
          : Buffer.from(file["path"]);
      return `${file["mode"]} blob ${file["blob"]} ${String(file["size"]).padStart(7)}\t${bytes.toString("latin1")}\0`;
    });
    expect(listed.join("")).toBe(repo.sh(`git ls-tree -r -l -z ${head}`));
    expect(statSync(made.manifestPath).mode & 0o777).toBe(0o644);
  });
});

describe("filters", () => {
  test("leave files and their content out, for git too", async () => {
    const made = await snapshot({ include: ["src/", "dir/"], exclude: ["dir/2"] });
    expect(made.commit).toBe(head);
    expect(made.insideHead).not.toBe(head);
    const seen = await inside(
      made,
      "git ls-files; git status --porcelain; git log --format=%H; git fsck --full; find . -path ./.git -prune -o -type f -print | sort",
    );
    expect(seen).toBe(
      `.gitattributes\n.gitignore\ndir/1\nsrc/a.txt\nsrc/deep/x\n${made.insideHead}\n./.gitattributes\n./.gitignore\n./dir/1\n./src/a.txt\n./src/deep/x\n`,
    );
    const left = repo.sh("git rev-parse HEAD:dir/2").trim();
    await expect(inside(made, `git cat-file -e ${left}`)).rejects.toThrow();
    expect(JSON.parse(readFileSync(made.manifestPath, "utf8")).files).toHaveLength(5);
  });

  test("that leave nothing out start from the commit itself", async () => {
    expect((await snapshot({ exclude: ["no-such-file"] })).insideHead).toBe(head);
  });
});

describe("extra files", () => {
  test("come in untracked and unseen by git, and a pattern without a match is reported", async () => {
    repo.sh(
      "echo TOKEN=1 > .env; mkdir -p logs node_modules/x; echo l > logs/a.log; ln -s a.log logs/b.log; echo n > node_modules/x/i; mkfifo pipe.log",
    );
    const made = await snapshot({ extra: [".env", "*.log", "nothing/*"] });
    expect(
      await inside(
        made,
        "cat .env; readlink logs/b.log; git status --porcelain; ls -A node_modules pipe.log 2>&1 || true; stat -c %u .env",
      ),
    ).toMatch(
      /^TOKEN=1\na.log\nls: cannot access 'node_modules'.*\nls: cannot access 'pipe.log'.*\n10001\n$/,
    );
    expect(made.warnings).toEqual([
      `files.extra: "nothing/*" matches no ignored or untracked file in ${repo.repository}`,
    ]);
    expect(JSON.parse(readFileSync(made.manifestPath, "utf8")).files.at(-1)).toMatchObject({
      path: "logs/b.log",
      untracked: true,
    });
    expect(await inside(await snapshot(), "ls -A .env || echo none")).toBe("none\n");
  });

  test("are read once per run", async () => {
    const runId = formatRunId("2026-11-30T14:25:01.000Z", "3f9a2c");
    const request = {
      baseCommit: head,
      parents: [],
      repository: repo.repository,
      filter: { ...ALL_FILES, extra: [".env"] },
    };
    repo.sh("echo one > .env");
    const first = await store.snapshot({ ...request, runId });
    repo.sh("echo two > .env");
    expect(await store.snapshot({ ...request, runId })).toEqual(first);
    expect(await store.snapshot(request)).not.toEqual(first);
  });
});

describe("dependencies", () => {
  const CHANGES = `
    echo changed > src/a.txt; chmod +x dir/1; rm dir/2; rm -r gone; rm link; mkdir link; echo in > link/file
    rm -r tests; echo file > tests; ln -sf run.sh empty; echo new > $'new\\xfe'; mkdir -p very/deep; echo v > very/deep/er
    rm $'b\\xffd'; rm $'new\\nline'`;

  test("one patch is taken as it is, and shows whole inside", async () => {
    const commit = await patch(CHANGES);
    const made = await snapshot({}, { a: commit });
    expect(made.commit).toBe(commit);
    expect(made.layers).toHaveLength(2);
    expect(await inside(made, LISTING)).toBe(expected(commit));
    expect(await inside(made, "git status --porcelain; git log --format=%H; git fsck --full")).toBe(
      `${commit}\n${head}\n`,
    );
  });

  test("cost what they changed, not what the repository holds", async () => {
    const made = await snapshot({}, { a: await patch("echo changed > src/a.txt") });
    expect(bash(made.layers[0] ?? "", "find . -path ./.git -prune -o -type f -print")).toBe("./src/a.txt\n");
    expect(await snapshot({}, { a: made.commit })).toEqual(made);
  });

  test("a chain needs no merge", async () => {
    const first = await patch("echo 1 > one");
    const second = await patch("echo 2 > two", first);
    const made = await snapshot({}, { a: first, b: second });
    expect(made.commit).toBe(second);
    expect(await inside(made, "cat one two")).toBe("1\n2\n");
  });

  test("several are merged, always to the same commit", async () => {
    const a = await patch("echo 1 > one; rm dir/1");
    const b = await patch("echo 2 > two; rm dir/2");
    const c = await patch("sed -i 's/a/A/' src/a.txt");
    const made = await snapshot({}, { a, b, c });
    expect(
      await inside(
        made,
        "cat one two src/a.txt; ls -d dir 2>/dev/null || echo no dir; git status --porcelain; git fsck",
      ),
    ).toBe("1\n2\nA\nno dir\n");
    expect(await inside(made, "git log -1 --format='%an %ad %P'")).toContain(`${head} ${a} ${b} ${c}`);
    bash(repo.cacheDir, "rm -rf trees");
    expect((await snapshot({}, { a, b, c })).commit).toBe(made.commit);
  });

  test("a patch that changed nothing adds nothing", async () => {
    const empty = await patch("true");
    const made = await snapshot({}, { a: empty, b: head });
    expect(made.commit).toBe(empty);
    expect(await inside(made, LISTING)).toBe(expected(head));
  });

  test("a conflict names the tasks and the files", async () => {
    const a = await patch("echo 1 > src/a.txt; echo 1 > é");
    const b = await patch("echo 2 > other");
    const c = await patch("echo 3 > src/a.txt; echo 3 > é");
    expect(await trySnapshot({}, { a, b, c })).toEqual({
      ok: false,
      error: { reason: "parents-conflict", fault: "task", parents: ["a", "c"], files: ["src/a.txt", "é"] },
    });
  });

  test("pass the filter too, and leave extra files where they are", async () => {
    repo.sh("echo e > dir/.env");
    await snapshot({ include: ["src/", "dir/"], extra: [".env"] });
    const commit = await patch("echo x > src/new; echo y > outside; git rm -qr dir");
    repo.sh("mkdir -p dir; echo e > dir/.env");
    const made = await snapshot({ include: ["src/", "dir/"], extra: [".env"] }, { a: commit });
    expect(made.commit).toBe(commit);
    expect(
      await inside(
        made,
        "git ls-files src dir outside; ls -A dir; git status --porcelain; git log --oneline | wc -l; git fsck",
      ),
    ).toBe("src/a.txt\nsrc/deep/x\nsrc/new\n.env\n2\n");
  });

  test("touched files alone are hashed by the first status", async () => {
    const made = await snapshot({}, { a: await patch("echo changed > src/a.txt") });
    expect(await inside(made, "git diff-files --name-only; git status --porcelain")).toBe("src/a.txt\n");
  });
});

describe("submodules", () => {
  beforeEach(async () => {
    repo.sh(`git init -q ../sub; cd ../sub; echo s > s.txt; mkdir bin; echo b > bin/b; ln -s s.txt link; git add -A; git commit -qm sub
      cd ../repo; git -c protocol.file.allow=always submodule --quiet add ../sub mod`);
    head = repo.commit("submodule");
    await store.importCommit(repo.repository, head, 1);
  });

  test("come in as plain files that git inside does not see, and stay under parents' layers", async () => {
    const made = await snapshot();
    expect(await inside(made, "ls -A mod mod/bin; cat mod/s.txt; git status --porcelain")).toBe(
      "mod:\nbin\nlink\ns.txt\n\nmod/bin:\nb\ns\n",
    );
    const layered = await snapshot({}, { a: await patch("echo changed > src/a.txt") });
    expect(await inside(layered, "cat mod/s.txt src/a.txt; git status --porcelain")).toBe("s\nchanged\n");
    for (const { manifestPath } of [made, layered]) {
      const { files } = JSON.parse(readFileSync(manifestPath, "utf8"));
      expect(files.filter(({ path }: { path?: string }) => path?.startsWith("mod/"))).toMatchObject([
        { path: "mod/bin/b", mode: "100644", untracked: true },
        { path: "mod/link", mode: "120000", untracked: true },
        { path: "mod/s.txt", mode: "100644", untracked: true },
      ]);
    }
  });

  test("are under the task's filter", async () => {
    expect(await inside(await snapshot({ exclude: ["bin/"] }), "ls -A mod; git status --porcelain")).toBe(
      "link\ns.txt\n",
    );
    expect(await inside(await snapshot({ exclude: ["/mod"] }), "test ! -e mod; git status --porcelain")).toBe(
      "",
    );
    expect(await inside(await snapshot({ include: ["mod"] }), "ls -A mod; git status --porcelain")).toBe(
      "bin\nlink\ns.txt\n",
    );
  });

  test("that are no longer cloned leave an empty directory", async () => {
    repo.sh("rm -rf .git/modules mod; mkdir mod");
    expect(await inside(await snapshot(), "ls -A mod; git status --porcelain")).toBe("");
  });
});
