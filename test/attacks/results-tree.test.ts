/** What a task could leave behind for tools that read files: links, names, kinds, sizes, and things that change while they are read. */
import { afterAll, beforeAll } from "vitest";
import { createRig } from "../support/bulkhead-cli.ts";
import { endRig } from "../support/e2e-rig.ts";
import {
  createPlace,
  type ResultAttack,
  type ResultEvidence,
  resultAttacks,
  runAsTasks,
} from "./support/result-attacks.ts";

const isLeaked = ({ isLeaked: leaked }: ResultEvidence): boolean => leaked;
const isSlow = ({ code, output }: ResultEvidence): boolean => code === 124 || output.includes('"timeout"');
const names =
  (part: string) =>
  ({ output }: ResultEvidence): boolean =>
    output.includes(`[${part}]`);
/** Prints names in brackets, as they come. */
const LIST = "find . -path ./.git -prune -o -printf '[%P]\\n'; echo done";
const PY = "python3 - <<'END'\nimport os, socket\n";

const ATTACKS: readonly ResultAttack[] = [
  {
    id: "results/symlink-absolute",
    claim: "has a file of the host copied out, through an absolute link",
    plant: "ln -s @OUTSIDE@/secret notes.txt",
    naive: 'cp -rL . "$OUT/copy"; cat "$OUT/copy/notes.txt"',
    succeeded: isLeaked,
  },
  {
    id: "results/symlink-relative",
    claim: "has a file of the host archived, through a link that goes up",
    plant: "up=../../../../../../../../../..; ln -s $up@OUTSIDE@/secret notes.txt",
    naive: "tar -chf - notes.txt | tar -xOf -",
    succeeded: isLeaked,
  },
  {
    id: "results/symlink-directory",
    claim: "has a whole folder of the host read, through a link in the place of a folder",
    plant: "rm -r dir; ln -s @OUTSIDE@ dir",
    naive: "cat dir/*",
    succeeded: isLeaked,
  },
  {
    id: "results/symlink-chain",
    claim: "leads outside by links each of which stays inside",
    plant:
      "mkdir -p p/q; ln -s p/q hop; for n in 1 2 3 4 5 6 7 8 9; do ups=$ups../; done; ln -s hop/../../../$ups@OUTSIDE@/secret notes.txt",
    naive: "cat notes.txt",
    succeeded: isLeaked,
  },
  {
    id: "results/symlink-swap",
    claim: "changes a file into a link between the look and the read",
    plant: `${PY}
if os.fork() == 0:
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2): os.dup2(null, fd)
    import time
    end = time.time() + 8
    while time.time() < end:
        open("x", "w").write("plain"); os.rename("x", "notes.txt")
        os.symlink("@OUTSIDE@/secret", "y"); os.rename("y", "notes.txt")
    os._exit(0)
END`,
    naive: `${PY}
import time
end = time.time() + 6
while time.time() < end:
    try:
        if os.path.islink("notes.txt"): continue
        text = open("notes.txt").read()
    except OSError: continue
    if text not in ("", "plain"): print(text); break
END`,
    succeeded: isLeaked,
  },
  {
    id: "results/fifo",
    claim: "makes whoever reads the tree wait for ever, with a pipe",
    plant: "mkfifo 0-pipe",
    naive: "timeout 1 cat * > /dev/null",
    succeeded: isSlow,
  },
  {
    id: "results/socket",
    claim: "makes a copy of the tree fail, with a socket",
    plant: `${PY}socket.socket(socket.AF_UNIX).bind("0-socket")\nEND`,
    naive: "cat 0-* a.txt > /dev/null",
    succeeded: ({ code, output }) => code !== 0 && !output.includes("special-file"),
  },
  {
    id: "results/sparse-file",
    claim: "makes whoever reads the tree go through 10 TB of nothing",
    plant: "truncate -s 10T big.bin",
    naive: "timeout 1 git add -A",
    succeeded: isSlow,
  },
  {
    id: "results/deep-tree",
    claim: "leaves a tree too deep to be walked or removed",
    plant: `${PY}for n in range(3000):\n    os.mkdir("deep" * 5); os.chdir("deep" * 5)\nopen("bottom", "w").write("x")\nEND`,
    naive: `node -e 'fs.cpSync(".", process.env.OUT + "/copy", {recursive: true})'`,
    succeeded: ({ code, output }) => code !== 0 && !output.includes("result-refused"),
  },
  {
    id: "results/file-flood",
    claim: "hands over more files than anybody can take",
    plant: `${PY}os.mkdir("flood")\nfor n in range(120000): os.close(os.open("flood/%d" % n, os.O_CREAT))\nEND`,
    naive: "git ls-files -o | wc -l",
    succeeded: ({ output }) => /\n1200\d\d\s/.test(output),
  },
  {
    id: "results/name-newline",
    claim: "has a file of the host removed, by a name with a line feed in it",
    plant: `nl='0\n'; mkdir -p "$nl$(dirname @PRECIOUS@)"; echo x > "$nl@PRECIOUS@"`,
    naive: "find . -name a.txt -o -path './0*' -type f | xargs rm -f",
    succeeded: ({ isPreciousWhole }) => !isPreciousWhole,
  },
  {
    id: "results/name-option",
    claim: "has a program run by `tar`, by names that are options",
    plant: `echo 'touch @CANARY@' > evil.sh; : > ./--checkpoint=1; : > './--checkpoint-action=exec=sh evil.sh'; : > ./--help; : > ./-rf`,
    naive: "rm -f -- --help -rf; tar cf /dev/null *",
  },
  {
    id: "results/name-invalid-utf8",
    claim: "gets a file past a tool that takes names for text",
    plant: `${PY}open(b"\\xff\\xfe.txt", "w").write("smuggled")\nEND`,
    naive: `node -e 'for (const name of fs.readdirSync(".")) if (name.endsWith(".txt")) console.log(fs.existsSync(name) ? "+" + fs.readFileSync(name) : "")'`,
    succeeded: ({ output }) => !output.includes("+smuggled"),
  },
  {
    id: "results/name-escape",
    claim: "has a terminal obey the name of a file",
    plant: `${PY}open("\\x1b]0;owned\\x07\\x1b[2J.txt", "w").write("x")\nEND`,
    naive: LIST,
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    succeeded: ({ output }) => /[\x1b\x07]/.test(output),
  },
  {
    id: "results/name-bidirectional",
    claim: "passes a script for a picture, by letters that turn the reading round",
    plant: `${PY}open("photo\\u202egnp.sh", "w").write("x")\nEND`,
    naive: "git add -A; git -c core.quotePath=false diff --cached --stat --compact-summary",
    succeeded: ({ output }) => /photo(\u202e|\xe2\x80\xae)gnp\.sh \(new\)/.test(output),
  },
  {
    id: "results/name-git-case",
    claim: "gets a .GIT folder out, which is git's own where case does not count",
    plant: "mkdir -p sub/.GIT/hooks; echo x > sub/.GIT/config",
    naive: LIST,
    succeeded: names("sub/.GIT/config"),
  },
  {
    id: "results/name-git-short",
    claim: "gets a git~1 folder out, which is git's own on Windows",
    plant: "mkdir -p 'git~1'; echo x > 'git~1/config'",
    naive: LIST,
    succeeded: names("git~1/config"),
  },
  {
    id: "results/name-git-space",
    claim: "gets a '.git ' folder out, which is git's own on Windows",
    plant: "mkdir -p '.git '; echo x > '.git /config'",
    naive: LIST,
    succeeded: names(".git /config"),
  },
  {
    id: "results/name-git-invisible",
    claim: "gets a .git folder with an invisible letter out, which is git's own on macOS",
    plant: `${PY}os.mkdir(".g\\u200cit"); open(".g\\u200cit/config", "w").write("x")\nEND`,
    naive: LIST,
    succeeded: ({ output }) => /\[\.g(\u200c|\xe2\x80\x8c)it\/config\]/.test(output),
  },
  {
    id: "results/setuid",
    claim: "gets a program out that runs as its owner",
    plant: "cp /bin/sh tool; chmod 6755 tool",
    naive: 'cp -a tool "$OUT/tool"; stat -c "mode %a" "$OUT/tool"',
    succeeded: ({ output }) => /mode [2-7]\d\d\d|10[2-7]755/.test(output),
  },
  {
    id: "results/whiteout",
    claim: "plants the mark by which an overlay hides a file below it",
    plant: "mknod hidden c 0 0 && echo made-it || true",
    naive: "stat -c %F hidden",
    succeeded: ({ output }) => output.includes("made-it"),
  },
  {
    id: "results/opaque-directory",
    claim: "plants the mark by which an overlay hides a whole folder below it",
    plant: `${PY}
for name in ("trusted.overlay.opaque", "user.overlay.opaque", "trusted.overlay.redirect"):
    try:
        os.setxattr("dir", name, b"y"); print("made-it", name)
    except OSError as error: print(error)
END`,
    naive: "true",
    succeeded: ({ output }) => output.includes("made-it trusted"),
  },
  {
    id: "results/device",
    claim: "gets a device node out, which is the host's disk",
    plant: "mknod disk b 254 0 && echo made-it || true",
    naive: "stat -c %F disk",
    succeeded: ({ output }) => output.includes("made-it"),
  },
];

const rig = createRig();
const open = createPlace(`${rig.root}/a`);
const closed = createPlace(`${rig.root}/b`);
let guarded: ReadonlyMap<string, ResultEvidence>;

beforeAll(async () => {
  guarded = await runAsTasks(rig, closed, ATTACKS);
});
afterAll(() => endRig(rig));

resultAttacks(ATTACKS, open, () => guarded);
