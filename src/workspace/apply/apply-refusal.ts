/** Why a change was not put into the user's repository, or not taken back. Nothing was changed then. */
export interface ApplyRefusal {
  readonly reason: /** The user's HEAD and the change differ in the same place. */
    | "conflict"
    /** Touched files have changes of the user's own, staged or not. */
    | "dirty"
    /** Files git does not track lie where the change would write. */
    | "untracked"
    /** HEAD has all of it. */
    | "already-there"
    /** HEAD is an unborn branch. */
    | "unborn"
    /** The change holds what no checkout may hold. */
    | "unsafe"
    /** Another git is at work in the repository, or died there. */
    | "index-locked"
    /** Another apply is at work. */
    | "busy"
    /** An interrupted apply could not be taken back: files were changed since. */
    | "interrupted"
    | "branch-exists"
    | "branch-name"
    /** The user's repository lacks the commit the run started from. */
    | "base-missing"
    /** Undo: touched files were changed since. */
    | "changed"
    /** Undo: there is no record of it. */
    | "not-found"
    /** Undo: the branch is checked out somewhere. */
    | "checked-out";
  /** Paths as in `FileChange.path`, or the one name that is meant; bounded. */
  readonly files: readonly string[];
}

const MESSAGES: Readonly<Record<ApplyRefusal["reason"], { message: string; hint: string }>> = {
  conflict: {
    message: "your commits since the run began changed the same places",
    hint: "Apply to a branch with --branch and merge it yourself.",
  },
  dirty: {
    message: "these files have changes of your own",
    hint: "Commit or stash them first, or apply to a branch with --branch.",
  },
  untracked: {
    message: "files that git does not track would be overwritten",
    hint: "Move them away first, or apply to a branch with --branch.",
  },
  "already-there": {
    message: "your HEAD has all of it already",
    hint: "There is nothing to apply.",
  },
  unborn: { message: "the repository has no commit yet", hint: "Make a first commit." },
  unsafe: {
    message:
      "the change holds a submodule, a link that leads outside, or a name that git could take for its own",
    hint: "Look at it with `bulkhead diff`; such a change is never written to a work tree.",
  },
  "index-locked": {
    message: "another git command is at work in the repository (its index is locked)",
    hint: "Wait for it to end; if none runs, remove the file index.lock from the git directory.",
  },
  busy: { message: "another apply is at work in the repository", hint: "Wait for it to end." },
  interrupted: {
    message: "an apply that was interrupted cannot be taken back, since these files were changed after it",
    hint: "Put them back with `git checkout HEAD -- FILE`, then try again.",
  },
  "branch-exists": { message: "there is a branch of that name", hint: "Choose another name." },
  "branch-name": { message: "git does not allow that branch name", hint: "Choose another name." },
  "base-missing": {
    message: "the repository lacks the commit the run started from",
    hint: "Fetch it, or apply to the work tree without --branch.",
  },
  changed: {
    message: "these files were changed since they were applied",
    hint: "Your changes would be lost: take them out first, or undo by hand.",
  },
  "not-found": {
    message: "there is no record of that apply",
    hint: "See `bulkhead status` for what was applied.",
  },
  "checked-out": {
    message: "the branch is checked out",
    hint: "Switch to another branch first.",
  },
};

/** The refusal in words, and what to do about it. */
export function explainApplyRefusal(refusal: ApplyRefusal): {
  readonly message: string;
  readonly hint: string;
} {
  const { message, hint } = MESSAGES[refusal.reason];
  const shown = refusal.files.slice(0, 10).join(", ");
  const more = refusal.files.length > 10 ? ` and ${refusal.files.length - 10} more` : "";
  return { message: shown === "" ? message : `${message}: ${shown}${more}`, hint };
}
