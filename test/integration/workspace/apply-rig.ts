/** A user's repository, bulkhead's store beside it, and patches made as an attempt would have left them. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { taskIdSchema } from "../../../src/model/ids.ts";
import { gitText } from "../../../src/workspace/git.ts";
import type { PatchToIntegrate } from "../../../src/workspace/integrate-patches.ts";
import { openObjectStore } from "../../../src/workspace/object-store.ts";
import type { ObjectStore } from "../../../src/workspace/workspace.ts";

export interface ApplyRig {
  readonly root: string;
  readonly repository: string;
  readonly journalDir: string;
  readonly store: ObjectStore;
  readonly base: string;
  /** Runs a shell script in the repository. */
  sh(script: string): string;
  /** Lets a script change a checkout of `parent` (the base where absent) and makes a patch of it in the store. */
  patch(taskId: string, script: string, parent?: string): Promise<PatchToIntegrate>;
  dispose(): void;
}

const IDENTITY = {
  GIT_AUTHOR_NAME: "t",
  GIT_AUTHOR_EMAIL: "t@example.org",
  GIT_COMMITTER_NAME: "t",
  GIT_COMMITTER_EMAIL: "t@example.org",
};

export interface RigOptions {
  /** Shell script that makes the first commit's files. */
  readonly files?: string;
  /** Run in the repository after the first commit. */
  readonly setup?: string;
  /** Whom the repository is to belong to. */
  readonly uid?: number;
  /** Shell that decides which directory is the user's work tree; prints its path. */
  readonly worktree?: string;
}

const FILES = `
printf 'one\\ntwo\\nthree\\nfour\\nfive\\nsix\\nseven\\neight\\n' > a.txt; printf 'b\\n' > b.txt; mkdir -p dir/sub; echo 1 > dir/one; echo 2 > dir/sub/two
printf '\\0\\1\\2' > bin; printf '#!/bin/sh\\n' > run.sh; chmod +x run.sh; ln -s a.txt link; echo x > 'größe.txt'; echo '*.log' > .gitignore
`;

export function shell(cwd: string, script: string, uid?: number): string {
  const home =
    uid === undefined
      ? {}
      : { uid, gid: uid, env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent" } };
  return execFileSync("bash", ["-euc", `umask 022\n${script}`], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    ...home,
  });
}

export async function createApplyRig(options: RigOptions = {}): Promise<ApplyRig> {
  const root = mkdtempSync(join(tmpdir(), "bh-apply-"));
  const main = join(root, "repo");
  mkdirSync(main);
  shell(
    main,
    `git init -q -b main; git config user.name u; git config user.email u@example.org
    ${options.files ?? FILES}
    git add -A; git commit -q -m base; ${options.setup ?? ""}`,
  );
  const repository = options.worktree ? shell(main, options.worktree).trim() : main;
  if (options.uid !== undefined) {
    execFileSync("chmod", ["755", root]);
    execFileSync("chown", ["-R", `${options.uid}:${options.uid}`, main]);
  }
  const safe = { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "safe.directory", GIT_CONFIG_VALUE_0: "*" };
  const base = execFileSync("git", ["-C", main, "rev-parse", "main"], {
    encoding: "utf8",
    env: { ...process.env, ...safe },
  }).trim();
  const store = await openObjectStore({ cacheDir: join(root, "cache"), repository });
  await store.importCommit(repository, base, 1);
  let patches = 0;
  return {
    root,
    repository,
    journalDir: join(root, "state", "applies"),
    store,
    base,
    sh: (script) => shell(repository, script, options.uid),
    async patch(taskId, script, parent = base) {
      patches += 1;
      const work = join(root, `work${patches}`);
      mkdirSync(work);
      const env = { GIT_INDEX_FILE: join(root, `work${patches}.index`) };
      const git = (args: readonly string[]) =>
        gitText(store.gitDir, ["-c", "core.bare=false", `--work-tree=${work}`, ...args], { env, cwd: work });
      await git(["read-tree", parent]);
      await git(["checkout-index", "-a"]);
      shell(work, script);
      await git(["add", "-A", "-f", "."]);
      const tree = await git(["write-tree"]);
      const message = `Do ${taskId}\n\nBulkhead-Task: ${taskId}`;
      const commit = await gitText(store.gitDir, ["commit-tree", "-p", parent, "-m", message, tree], {
        env: IDENTITY,
      });
      return { taskId: taskIdSchema.parse(taskId), parent, commit };
    },
    dispose() {
      execFileSync("rm", ["-rf", "--one-file-system", root]);
    },
  };
}

/** Content, kind and mode of everything git tracks or sees as new, plus the index: two equal ones are the same state. */
export function stateOf(rig: ApplyRig): string {
  return rig.sh(
    `git --no-optional-locks status --porcelain=v2 -uall; git ls-files -s; git diff --no-ext-diff | sha1sum
     find . -path ./.git -prune -o -printf '%p %y %m %l\\n' | sort; ls -A "$(git rev-parse --git-dir)" | grep -E 'lock|bulkhead' || true`,
  );
}

export function writeUserFile(rig: ApplyRig, path: string, content: string): void {
  writeFileSync(join(rig.repository, path), content);
}
