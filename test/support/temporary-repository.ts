import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FileFilter } from "../../src/model/task.ts";

export const ALL_FILES: FileFilter = {
  include: [],
  exclude: [],
  tests: "all",
  keywords: [],
  history: 1,
  extra: [],
};

/** Runs a bash script; its output has one character per byte. Identity and dates are fixed, no config of the machine is read. */
export function bash(cwd: string, script: string, env: Record<string, string> = {}): string {
  return execFileSync("bash", ["-euc", script], {
    cwd,
    encoding: "latin1",
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"],
      HOME: cwd,
      LC_ALL: "C.UTF-8",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_AUTHOR_NAME: "Ann",
      GIT_AUTHOR_EMAIL: "ann@example.org",
      GIT_COMMITTER_NAME: "Ann",
      GIT_COMMITTER_EMAIL: "ann@example.org",
      GIT_AUTHOR_DATE: "2026-01-02T03:04:05Z",
      GIT_COMMITTER_DATE: "2026-01-02T03:04:05Z",
      ...env,
    },
  });
}

/** A temporary directory with a repository in `repo` and room for a cache and a state directory beside it. */
export interface TemporaryRepository {
  readonly root: string;
  readonly repository: string;
  readonly cacheDir: string;
  readonly stateDir: string;
  /** Runs a script in the repository. */
  sh(script: string, env?: Record<string, string>): string;
  /** Commits everything and returns the id. */
  commit(message?: string): string;
  dispose(): void;
}

/** Makes a repository whose first commit is what `setup` leaves. */
export function createTemporaryRepository(
  setup: string,
  options: { readonly name?: string; readonly objectFormat?: "sha1" | "sha256" } = {},
): TemporaryRepository {
  const root = mkdtempSync(join(tmpdir(), "bh-snapshot-"));
  chmodSync(root, 0o755);
  const repository = join(root, options.name ?? "repo");
  const stateDir = join(root, "state");
  mkdirSync(repository);
  mkdirSync(stateDir);
  const sh = (script: string, env?: Record<string, string>) => bash(repository, script, env);
  sh(`git init -q -b main --object-format=${options.objectFormat ?? "sha1"} .`);
  const made: TemporaryRepository = {
    root,
    repository,
    cacheDir: join(root, "cache"),
    stateDir,
    sh,
    commit: (message = "change") =>
      sh(`git add -A && git commit -q --allow-empty -m '${message}' && git rev-parse HEAD`).trim(),
    dispose() {
      // What a failed test left mounted would keep its files alive.
      const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
      for (const line of mounts.filter((one) => one.includes(` ${root}/`))) {
        execFileSync("umount", ["--lazy", line.split(" ")[4] ?? ""]);
      }
      execFileSync("rm", ["-rf", "--one-file-system", root]);
    },
  };
  sh(setup);
  made.commit("first");
  return made;
}

/** Every kind of file and name that git can hold. */
export const ODD_FILES = `
mkdir -p src/deep dir gone 'sp ace' tests
echo a > src/a.txt; echo deep > src/deep/x; : > empty; printf '#!/bin/sh\\n' > run.sh; chmod +x run.sh
ln -s src/a.txt link; ln -s /nowhere dangling
printf 'a\\r\\nb\\r\\n' > crlf.txt; printf '$Id$\\n' > ident.txt; printf 'one\\ntwo\\n' > utf16.txt
echo d1 > dir/1; echo d2 > dir/2; echo g > gone/only; echo s > 'sp ace/f'; echo t > tests/t.py
echo n > $'new\\nline'; echo q > 'quo"te'; echo b > 'back\\slash'; echo e > é; echo bad > $'b\\xffd'; echo l > -lead; echo p > '%41'
mkdir -p "$(printf 'n%.0s' $(seq 120))"; echo long > "$(printf 'n%.0s' $(seq 120))/$(printf 'm%.0s' $(seq 200))"
ln -s "$(printf 'm%.0s' $(seq 180))" longlink
printf '.env\\n*.log\\nnode_modules/\\n' > .gitignore
printf 'crlf.txt text eol=lf\\nident.txt ident\\nutf16.txt text working-tree-encoding=UTF-16LE-BOM\\n' > later-attributes
`;
