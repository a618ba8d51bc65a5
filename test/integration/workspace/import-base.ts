import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ResultProblem } from "../../../src/model/failure.ts";
import type { RunOptions } from "./import-rig.ts";

export interface ImportCase {
  readonly name: string;
  readonly change: (work: string) => void;
  readonly options?: RunOptions;
  /** `git`: the tree is the one `git add -A` makes. A list of paths: exactly these changed. */
  readonly expect:
    | "git"
    | "empty"
    | { readonly paths: readonly string[] }
    | { readonly problems: ReadonlyArray<ResultProblem["kind"]> };
  readonly ignored?: number;
}
/** The tree all cases start from. */
export function setUpBase(directory: string): void {
  const put = (path: string, content: string | Buffer) => {
    mkdirSync(join(directory, path, ".."), { recursive: true });
    writeFileSync(join(directory, path), content);
  };
  put("README.md", "# hello\n");
  put(".gitignore", "*.log\n/dist/\nnode_modules/\n.env\n!keep.log\n");
  put("src/a.txt", "a\nb\nc\n");
  put("src/b.txt", "b\n");
  put("src/deep/er/c.txt", "c\n");
  put("src/crlf.txt", "one\r\ntwo\r\n");
  put("bin/run.sh", "#!/bin/sh\n");
  chmodSync(join(directory, "bin/run.sh"), 0o755);
  put("img/logo.bin", Buffer.from([0, 1, 2, 255, 254, 10, 13, 0]));
  put("empty", "");
  put("docs/größe.md", "ü\n");
  put("d/one", "1\n");
  put("d/two", "2\n");
  put("d/sub/three", "3\n");
  symlinkSync("src/a.txt", join(directory, "link"));
  symlinkSync("/etc/hostname", join(directory, "old-absolute"));
  // Tracked in spite of the ignore rules.
  put("tracked.txt", "t\n");
}
