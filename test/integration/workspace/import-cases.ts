import {
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { ImportCase } from "./import-base.ts";
import { ODD_CASES } from "./import-odd-cases.ts";
import { sh } from "./import-rig.ts";

const PLAIN_CASES: readonly ImportCase[] = [
  { name: "nothing", change: () => undefined, expect: "empty" },
  { name: "an edit", change: (w) => writeFileSync(join(w, "src/a.txt"), "a\nB\nc\n"), expect: "git" },
  {
    name: "binary content",
    change: (w) => writeFileSync(join(w, "img/logo.bin"), Buffer.from([0, 255, 1, 13, 10])),
    expect: "git",
  },
  {
    name: "CRLF kept, attributes not obeyed",
    change: (w) => writeFileSync(join(w, "src/crlf.txt"), "one\r\n2\r\n"),
    expect: "git",
  },
  {
    name: "executable bit",
    change: (w) => {
      chmodSync(join(w, "README.md"), 0o755);
      chmodSync(join(w, "bin/run.sh"), 0o644);
    },
    expect: "git",
  },
  {
    name: "setuid and sticky bits dropped",
    change: (w) => {
      writeFileSync(join(w, "suid"), "x");
      chmodSync(join(w, "suid"), 0o6755);
    },
    expect: "git",
  },
  { name: "group bits only", change: (w) => chmodSync(join(w, "README.md"), 0o664), expect: "empty" },
  {
    name: "touched only",
    change: (w) => {
      utimesSync(join(w, "src/a.txt"), 1, 1);
      writeFileSync(join(w, "src/b.txt"), "b\n");
    },
    expect: "empty",
  },
  {
    name: "rename of a file",
    change: (w) => renameSync(join(w, "src/a.txt"), join(w, "src/z.txt")),
    expect: "git",
  },
  {
    name: "rename of a directory",
    change: (w) => {
      sh(w, "mv src moved");
    },
    expect: "git",
  },
  {
    name: "symlinks added and changed",
    change: (w) => {
      symlinkSync("../README.md", join(w, "src/up"));
      unlinkSync(join(w, "link"));
      symlinkSync("src/b.txt", join(w, "link"));
    },
    expect: "git",
  },
  {
    name: "an old absolute symlink kept",
    change: (w) => {
      unlinkSync(join(w, "old-absolute"));
      symlinkSync("/etc/hostname", join(w, "old-absolute"));
    },
    expect: "empty",
  },
  {
    name: "deletions",
    change: (w) => {
      unlinkSync(join(w, "src/a.txt"));
      rmSync(join(w, "d"), { recursive: true });
    },
    expect: "git",
  },
  {
    name: "everything deleted",
    change: (w) => {
      sh(w, "rm -rf -- ./* ./.gitignore");
    },
    expect: "git",
  },
  { name: "empty file", change: (w) => writeFileSync(join(w, "nil"), ""), expect: "git" },
  {
    name: "empty directory",
    change: (w) => mkdirSync(join(w, "void/void"), { recursive: true }),
    expect: "empty",
  },
  {
    name: "file becomes directory",
    change: (w) => {
      unlinkSync(join(w, "empty"));
      mkdirSync(join(w, "empty"));
      writeFileSync(join(w, "empty/in"), "in");
    },
    expect: "git",
  },
  {
    name: "directory becomes file",
    change: (w) => {
      rmSync(join(w, "d"), { recursive: true });
      writeFileSync(join(w, "d"), "d");
    },
    expect: "git",
  },
  {
    name: "directory becomes symlink",
    change: (w) => {
      rmSync(join(w, "d"), { recursive: true });
      symlinkSync("src", join(w, "d"));
    },
    expect: "git",
  },
  {
    name: "file becomes symlink, symlink becomes file",
    change: (w) => {
      unlinkSync(join(w, "README.md"));
      symlinkSync("link", join(w, "README.md"));
      unlinkSync(join(w, "link"));
      writeFileSync(join(w, "link"), "x");
    },
    expect: "git",
  },
  {
    name: "rm -rf d && mkdir d",
    change: (w) => {
      sh(w, "rm -rf d && mkdir d && echo new > d/four");
    },
    expect: "git",
  },
  {
    name: "opaque directory with an old name inside",
    change: (w) => {
      sh(w, "rm -rf d && mkdir -p d/sub && echo x > d/one && echo x > d/sub/other");
    },
    expect: "git",
  },
  {
    name: "opaque directory, emptied",
    change: (w) => {
      sh(w, "rm -rf src && mkdir -p src/deep/er");
    },
    expect: "git",
  },
  {
    name: "same content again after rm -rf",
    change: (w) => {
      sh(w, "cp -a src keep && rm -rf src && mv keep src");
    },
    expect: "empty",
  },
];

export const CASES: readonly ImportCase[] = [...PLAIN_CASES, ...ODD_CASES];
