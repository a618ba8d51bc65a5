/** What a task could leave behind for git to trip over: configuration, hooks, nested repositories, borrowed objects (rows P3, P12). */
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

const EVIL = `printf '#!/bin/sh\\ntouch @CANARY@\\n[ -t 0 ] || cat\\n' > evil.sh; chmod +x evil.sh`;

const ATTACKS: readonly ResultAttack[] = [
  {
    id: "results/fsmonitor",
    claim: "has a program run by `git status`, as core.fsmonitor",
    plant: `git config core.fsmonitor "touch @CANARY@; false"; echo x >> a.txt`,
    naive: "git status",
  },
  {
    id: "results/hooks",
    claim: "has a program run by `git commit`, as a hook",
    plant: `${EVIL}; mkdir -p .git/hooks; cp evil.sh .git/hooks/pre-commit; echo x >> a.txt`,
    naive: "git commit -qam work < /dev/null",
  },
  {
    id: "results/hooks-path",
    claim: "has a program run by `git commit`, as a hook in a folder of the tree",
    plant: `${EVIL}; mkdir tools; mv evil.sh tools/post-commit; git config core.hooksPath tools; echo x >> a.txt`,
    naive: "git commit -qam work < /dev/null",
  },
  {
    id: "results/clean-filter",
    claim: "has a program run by `git add`, as a filter",
    plant: `git config filter.evil.clean "touch @CANARY@; cat"; echo '* filter=evil' > .gitattributes; echo x >> a.txt`,
    naive: "git add -A",
  },
  {
    id: "results/info-attributes",
    claim: "has a program run by `git add`, with nothing to see in the tree",
    plant: `git config filter.evil.clean "touch @CANARY@; cat"; mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes; echo x >> a.txt`,
    naive: "git add -A",
  },
  {
    id: "results/external-diff",
    claim: "has a program run by `git diff`, as diff.external",
    plant: `git config diff.external "touch @CANARY@; true"; echo x >> a.txt`,
    naive: "git diff",
  },
  {
    id: "results/textconv",
    claim: "has a program run by `git diff`, as a converter to text",
    plant: `git config diff.evil.textconv "touch @CANARY@; cat"; echo '*.txt diff=evil' > .gitattributes; echo x >> a.txt`,
    naive: "git diff",
  },
  {
    id: "results/merge-driver",
    claim: "has a program run by `git merge`, as a merge driver",
    plant: `git config merge.evil.driver "touch @CANARY@; true"; echo '* merge=evil' > .gitattributes; echo task >> a.txt; git add -A; git commit -qm task; git branch task`,
    naive: `git checkout -q -b mine HEAD~1; printf '* merge=evil\\n' > .gitattributes; echo mine >> a.txt; git add -A; git commit -qm mine; git merge -q task`,
  },
  {
    id: "results/ssh-command",
    claim: "has a program run by `git fetch`, as core.sshCommand",
    plant: `git config core.sshCommand "touch @CANARY@; false"; git config remote.origin.url ssh://git@git.example.org/x.git; echo x >> a.txt`,
    naive: "git fetch -q",
  },
  {
    id: "results/signing-program",
    claim: "has a program run by `git commit`, as the one that signs",
    plant: `${EVIL}; git config commit.gpgSign true; git config gpg.program "$PWD/evil.sh"; echo x >> a.txt`,
    naive: "git commit -qam work < /dev/null",
  },
  {
    id: "results/alias-pager",
    claim: "has a program run by `git log`, as its pager",
    plant: `git config core.pager "touch @CANARY@; cat"; echo x >> a.txt`,
    naive: "script -qec 'git log' /dev/null",
  },
  {
    id: "results/git-file",
    claim: "puts a .git file in place of the directory, which leads to one with a program in it",
    plant: `mv .git meta; echo 'gitdir: meta' > .git; git config core.fsmonitor "touch @CANARY@; false"; echo x >> a.txt`,
    naive: "git status",
  },
  {
    id: "results/nested-repository",
    claim: "has a program run by `git status`, from a repository inside the tree",
    plant: `git init -q inner; echo f > inner/f; git -C inner add f; git -C inner commit -q -m x; git add inner 2>&1; git -C inner config filter.evil.clean "touch @CANARY@; cat"; echo '* filter=evil' > inner/.gitattributes; echo g > inner/f`,
    naive: "git -c core.fsmonitor=false -c core.hooksPath=/dev/null status",
  },
  {
    id: "results/bare-repository",
    claim: "has a program run by git wherever somebody steps into a folder that is a repository by itself",
    plant: `git init -q --bare docs; git -C docs config core.fsmonitor "touch @CANARY@; false"; git -C docs config core.bare false; git -C docs config core.worktree .`,
    naive:
      "git add -A; git commit -qm work; git clone -q . $OUT/c; cd $OUT/c/docs; mkdir -p refs objects; git status",
  },
  {
    id: "results/submodule-update",
    claim: "has a program run by `git submodule update`",
    plant: `git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub 2>&1; printf '[submodule "sub"]\\n\\tpath = sub\\n\\turl = ./sub\\n' > .gitmodules; git add .gitmodules
git config submodule.sub.url ./sub; git config submodule.sub.update '!touch @CANARY@; true'; git -C sub commit -q --allow-empty -m y`,
    naive: "git submodule update",
  },
  {
    id: "results/gitmodules-link",
    claim: "makes .gitmodules a link to a file of the host",
    plant: "ln -s @OUTSIDE@/secret .gitmodules",
    naive: "cat .gitmodules",
    succeeded: ({ isLeaked }) => isLeaked,
  },
  {
    id: "results/alternates",
    claim: "borrows objects of a repository it was never shown, and commits a file of it",
    plant: `mkdir -p .git/objects/info; echo @OBJECTS@ >> .git/objects/info/alternates; git update-index --add --cacheinfo 100644,@OID@,leak
git update-ref HEAD "$(git commit-tree -p HEAD -m leak "$(git write-tree --missing-ok)")"; git show HEAD:leak || true; echo x >> a.txt`,
    naive: "git show HEAD:leak",
    succeeded: ({ isLeaked }) => isLeaked,
  },
  {
    id: "results/rewritten-history",
    claim: "hands over commits that rewrite what the person had",
    plant: `git checkout -q --orphan fresh; echo other > a.txt; git add -A; git commit -qm rewritten; git branch -f main fresh; git checkout -q main`,
    naive: `git push -q --force "$MAIN" HEAD:refs/heads/taken; git -C "$MAIN" merge-base main taken || echo nothing in common`,
    succeeded: ({ output }) => output.includes("nothing in common"),
  },
  {
    id: "results/index-flags",
    claim: "hides a change from git by flags in the index",
    plant:
      "git update-index --assume-unchanged a.txt; git update-index --skip-worktree b.txt; echo hidden >> a.txt; echo hidden >> b.txt",
    naive: "git add -A; git diff --cached",
    succeeded: ({ output }) => !output.includes("+hidden"),
  },
  {
    id: "results/exclude-file",
    claim: "hides a new file from git by its own exclude file",
    plant: "mkdir -p .git/info; echo 'smuggled*' > .git/info/exclude; echo x > smuggled.txt; echo x >> a.txt",
    naive: "git add -A; git diff --cached",
    succeeded: ({ output }) => !output.includes("smuggled.txt"),
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
