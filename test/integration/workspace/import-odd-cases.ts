/** Odd names, ignored files, nested repositories, and what is planted to hurt. */
import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ImportCase } from "./import-base.ts";
import { sh } from "./import-rig.ts";

const many = (count: number) => (work: string) => {
  for (let i = 0; i < count; i += 1) {
    mkdirSync(join(work, `m${i % 10}`), { recursive: true });
    writeFileSync(join(work, `m${i % 10}/f${i}.txt`), `file ${i}\n`);
  }
};
export const ODD_CASES: readonly ImportCase[] = [
  {
    name: "non-ASCII names",
    change: (w) => {
      sh(w, "mkdir 日本 && echo a > 日本/語.txt && mv docs/größe.md docs/Größe.md");
    },
    expect: "git",
  },
  {
    name: "newline, quote, dash, backslash, invalid UTF-8",
    change: (w) => {
      sh(
        w,
        `echo 1 > $'new\\nline'; echo 2 > 'quo"te'; echo 3 > ./-dash; echo 4 > $'in\\xffvalid'; mkdir $'d\\xfe'; echo 5 > $'d\\xfe/back\\\\slash'; echo 6 > $'tab\\tesc\\e'; echo 7 > ' lead'; echo 8 > 'trail '`,
      );
    },
    expect: "git",
  },
  {
    name: "long names",
    change: (w) => {
      const dir = `${"n".repeat(200)}/${"m".repeat(200)}/${"o".repeat(200)}`;
      mkdirSync(join(w, dir), { recursive: true });
      writeFileSync(join(w, dir, "ö".repeat(100)), "deep");
      symlinkSync(`${"n".repeat(200)}/${"m".repeat(200)}`, join(w, "far"));
    },
    expect: "git",
  },
  {
    name: "a big file",
    change: (w) => writeFileSync(join(w, "big"), Buffer.alloc(40 * 1024 * 1024, "bulkhead")),
    expect: "git",
  },
  { name: "1,000 files", change: many(1000), expect: "git" },
  {
    name: "hard links are files",
    change: (w) => {
      writeFileSync(join(w, "h1"), "hard");
      linkSync(join(w, "h1"), join(w, "h2"));
      linkSync(join(w, "src/a.txt"), join(w, "h3"));
    },
    expect: "git",
  },
  {
    name: "ignored files are left out",
    change: (w) => {
      sh(
        w,
        "mkdir -p dist node_modules/x src/node_modules && echo 1 > dist/o && echo 2 > node_modules/x/y && echo 3 > a.log && echo 4 > src/node_modules/z && echo 5 > .env && echo 6 > keep.log && echo 7 > src/dist",
      );
    },
    expect: "git",
    ignored: 5,
  },
  {
    name: "ignore rules of the change itself, nested and negated",
    change: (w) => {
      sh(
        w,
        "printf '*.tmp\\n!good.tmp\\n/only/\\n' > src/.gitignore; echo 1 > src/x.tmp; echo 2 > src/good.tmp; mkdir src/only d/only; echo 3 > src/only/a; echo 4 > d/only/b; echo 5 > d/y.tmp; mkdir src/n; echo '!x.tmp' > src/n/.gitignore; echo 6 > src/n/x.tmp",
      );
    },
    expect: "git",
    ignored: 2,
  },
  {
    name: "a tracked file that a new rule ignores",
    change: (w) => {
      sh(
        w,
        "echo '*.txt' >> .gitignore; echo more > tracked.txt; echo new > new.txt; echo c > src/deep/er/c.txt; echo x > src/deep/er/d.txt",
      );
    },
    expect: { paths: [".gitignore", "tracked.txt"] },
    ignored: 2,
  },
  {
    name: "tracked files in a directory that a new rule ignores",
    change: (w) => {
      sh(
        w,
        "echo '/src/' >> .gitignore; echo more > src/a.txt; echo new > src/new; rm src/b.txt; rm -r src/deep; mkdir src/new.d; echo q > src/new.d/q",
      );
    },
    expect: { paths: [".gitignore", "src/a.txt", "src/b.txt", "src/deep/er/c.txt"] },
    ignored: 2,
  },
  {
    name: "patterns of info/exclude",
    change: (w) => {
      sh(w, "echo 1 > local.me; echo 2 > other");
    },
    options: { exclude: "*.me\n" },
    expect: { paths: ["other"] },
    ignored: 1,
  },
  {
    name: "a nested repository is plain files",
    change: (w) => {
      sh(
        w,
        "git init -q nested; cd nested; echo 1 > f; git add f; git -c user.name=n -c user.email=n@n commit -q -m n",
      );
    },
    expect: { paths: ["nested/f"] },
  },
  {
    name: "the workspace's own .git",
    change: (w) => {
      sh(w, "git init -q .; echo '[core] fsmonitor=/bin/false' >> .git/config; echo 1 > f");
    },
    expect: { paths: ["f"] },
  },
  {
    name: "a nested .git file",
    change: (w) => {
      sh(w, "mkdir sub; echo 'gitdir: /etc' > sub/.git; echo 1 > sub/f");
    },
    expect: { paths: ["sub/f"] },
  },
  {
    name: "files left out of the snapshot stay",
    change: (w) => {
      sh(w, "echo 1 > src/a.txt; rm -rf d; mkdir d; echo 22 > d/two");
    },
    options: { leaveOut: ["src/deep", "d/sub", "img"] },
    expect: { paths: ["d/one", "d/two", "src/a.txt"] },
  },
  // Hostile from here on.
  {
    name: "fifo",
    change: (w) => {
      sh(w, "mkfifo pipe");
    },
    expect: { problems: ["special-file"] },
  },
  {
    name: "fifo in place of a tracked file",
    change: (w) => {
      sh(w, "rm src/a.txt; mkfifo src/a.txt");
    },
    expect: { problems: ["special-file"] },
  },
  {
    name: "device",
    change: (w) => {
      sh(w, "mknod null c 1 3");
    },
    expect: { problems: ["special-file"] },
  },
  {
    name: "ignored fifo and link out",
    change: (w) => {
      sh(
        w,
        "mkdir dist node_modules; mkfifo dist/p x.log; ln -s /etc/shadow dist/s; ln -s / node_modules/root; echo 1 > f",
      );
    },
    expect: { paths: ["f"] },
  },
  {
    name: "absolute symlink",
    change: (w) => symlinkSync("/etc/shadow", join(w, "s")),
    expect: { problems: ["symlink-outside"] },
  },
  {
    name: "escaping symlinks",
    change: (w) => {
      sh(
        w,
        "ln -s ../x s1; ln -s a/../../x src/s2; ln -s ../../x src/s3; ln -s .git/config s4; ln -s src/.GIT/hooks s5",
      );
    },
    expect: {
      problems: [
        "symlink-outside",
        "symlink-outside",
        "symlink-outside",
        "symlink-outside",
        "symlink-outside",
      ],
    },
  },
  {
    name: "symlinked directory with files behind it",
    change: (w) => {
      sh(w, "rm -rf d; ln -s /etc d");
    },
    expect: { problems: ["symlink-outside"] },
  },
  {
    name: ".gitmodules as a symlink",
    change: (w) => symlinkSync("README.md", join(w, ".gitmodules")),
    expect: { problems: ["symlink-outside"] },
  },
  {
    name: "names like .git",
    change: (w) => {
      sh(
        w,
        `mkdir .GIT 'git~1' '.git ' $'.g\\xe2\\x80\\x8cit'; echo x > .GIT/config; echo x > 'git~1/config'; echo x > '.git /config'; echo x > $'.g\\xe2\\x80\\x8cit/config'; echo x > 'a\\.git'`,
      );
    },
    expect: {
      problems: ["git-directory", "git-directory", "git-directory", "git-directory", "git-directory"],
    },
  },
  {
    name: "sparse 10 TB",
    change: (w) => {
      sh(w, "truncate -s 10T huge");
    },
    expect: { problems: ["too-many-bytes"] },
  },
  {
    name: "total size",
    change: (w) => {
      sh(w, "for i in 1 2 3 4; do head -c 400000 /dev/zero > z$i; done");
    },
    options: { limits: { maxTotalBytes: 1_000_000 } },
    expect: { problems: ["too-many-bytes"] },
  },
  {
    name: "too many files",
    change: many(60),
    options: { limits: { maxFiles: 50 } },
    expect: { problems: ["too-many-files"] },
  },
  {
    name: "too many deletions",
    change: (w) => {
      sh(w, "rm -rf src d");
    },
    options: { limits: { maxFiles: 3 } },
    expect: { problems: ["too-many-files"] },
  },
  {
    name: "path too long",
    change: (w) => writeFileSync(join(w, "l".repeat(120)), "x"),
    options: { limits: { maxPathBytes: 100 } },
    expect: { problems: ["path-too-long"] },
  },
  {
    name: "4,000 directories deep",
    change: (w) => digDown(w, "v", 4000),
    expect: { problems: ["too-deep"] },
  },
  {
    name: "a path of 24,000 bytes",
    change: (w) => digDown(w, "v".repeat(60), 400),
    expect: { problems: ["path-too-long"] },
  },
  {
    name: "too deep and too long where it is ignored",
    change: (w) => {
      sh(w, "mkdir dist; echo 1 > f");
      digDown(join(w, "dist"), "d", 4000);
      digDown(join(w, "dist"), "e".repeat(60), 400);
    },
    expect: { paths: ["f"] },
  },
  {
    name: "planted filters, hooks and fsmonitor",
    change: (w) => {
      sh(w, plantedScript);
    },
    expect: { paths: [".gitattributes", ".gitmodules", "README.md", "sub/.gitattributes", "sub/f"] },
  },
];

/** Makes directories below each other, deeper than a path can be long. */
function digDown(work: string, name: string, depth: number): void {
  const script = [
    "import os",
    `for _ in range(${depth}):`,
    `  os.mkdir('${name}')`,
    `  os.chdir('${name}')`,
    "open('f', 'w').close()",
  ].join("\n");
  execFileSync("python3", ["-c", script], { cwd: work });
}

/** Touches the canary when any git on the host obeys what lies in the workspace. `CANARY` is set by the test. */
const plantedScript = `
C="$(cd .. && pwd)/canary"; X="touch $C"
git init -q . ; git config core.fsmonitor "$X; false"; git config filter.x.clean "$X; cat"; git config filter.x.smudge "$X; cat"
git config core.hooksPath "$PWD/.git/hooks"; git config diff.external "$X"; git config diff.x.textconv "$X; cat"
for h in post-index-change reference-transaction post-commit pre-commit; do printf '#!/bin/sh\\n%s\\n' "$X" > .git/hooks/$h; chmod +x .git/hooks/$h; done
echo '* filter=x diff=x text eol=crlf ident working-tree-encoding=UTF-16' > .gitattributes
printf '[submodule "sub"]\\n path = sub\\n url = ext::sh -c %%s\\n ignore = none\\n' > .gitmodules
git init -q sub; cp .git/config sub/.git/config; cp .gitattributes sub/; echo x > sub/f
echo '$Id$ changed' > README.md
rm -f "$C"
`;
