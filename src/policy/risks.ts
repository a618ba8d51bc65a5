/**
 * The risk list: changes that do something by themselves, later and somewhere else: on the machine of whoever opens, builds or
 * installs the repository, or on the servers that build it. All of it is legitimate work at times, so nothing is refused; a person
 * has to say which of these rules a patch may touch. One table: a new risk is a new row. What only one project holds dear goes into
 * `protect`.
 *
 * LIMITATION: a rule goes by the path in the patch. Where the repository already has a link from such a path to another, a change of
 * the other is not flagged.
 */

/** Git's modes of one path before and after; null where there is nothing. */
export interface RiskyChange {
  readonly path: string;
  readonly oldMode: string | null;
  readonly newMode: string | null;
}

/** Content before and after; null where there is none, `unread` where it was too large to look at. */
export type RiskContent = string | null | "unread";

export interface RiskRule {
  /** What a person types behind `--allow`. */
  readonly id: string;
  /** Why it matters: goes on after the path, in a sentence. */
  readonly why: string;
  /** Whether the change falls under the rule; `by-content` where the two contents decide. */
  readonly test: (change: RiskyChange) => boolean | "by-content";
  readonly testContent?: (before: RiskContent, after: RiskContent) => boolean;
}

/** The rule of paths that the task's own `protect` patterns name. They are matched elsewhere: their syntax is gitignore's. */
export const PROTECTED_RULE = "protected";

const EXECUTABLE = "100755";
const SYMLINK = "120000";

export const RISK_RULES: readonly RiskRule[] = [
  {
    id: "ci-config",
    why: "runs on build servers, where secrets are",
    test: anyOf([
      ...[".github/workflows/", ".github/actions/", ".circleci/", ".buildkite/", ".gitea/workflows/"],
      ...[".forgejo/workflows/", ".gitlab-ci.yml", ".gitlab/ci/", ".woodpecker/", ".woodpecker.y*ml"],
      ...[".drone.y*ml", ".travis.yml", "azure-pipelines*.y*ml", "bitbucket-pipelines.yml", "Jenkinsfile*"],
      ...[".github/dependabot.y*ml", "appveyor.yml", ".appveyor.yml", "cloudbuild.y*ml", ".teamcity/"],
      ...["buildspec.y*ml", ".cirrus.yml", "action.yml", "action.yaml"],
    ]),
  },
  {
    id: "git-hooks",
    why: "runs when somebody commits, pulls or pushes",
    test: anyOf([
      ...[".husky/", ".githooks/", "githooks/", ".git-hooks/", ".pre-commit-config.y*ml"],
      ...[".pre-commit-hooks.y*ml", "lefthook.y*ml", ".lefthook.y*ml", "lefthook-local.y*ml", ".lefthook/"],
      ...[
        ".overcommit.yml",
        ".simple-git-hooks.*",
        "simple-git-hooks.*",
        ".lintstagedrc*",
        "lint-staged.config.*",
      ],
    ]),
  },
  {
    id: "git-config",
    why: "changes what git itself does with the repository",
    // A folder with a HEAD can be a repository of its own, with programs in its configuration, to a git that runs in it.
    test: anyOf([".gitattributes", ".gitmodules", ".gitconfig", ".lfsconfig", "HEAD"]),
  },
  {
    id: "editor-task",
    why: "runs when somebody opens the folder in an editor or a container",
    test: anyOf([
      ...[
        ".vscode/",
        ".idea/",
        ".fleet/",
        ".zed/",
        "*.code-workspace",
        ".devcontainer/",
        ".devcontainer.json",
      ],
      ...[".vimrc", ".nvimrc", ".exrc", ".nvim.lua", ".dir-locals.el", ".gitpod.yml", "*.sublime-project"],
    ]),
  },
  {
    id: "agent-config",
    why: "tells coding agents and bulkhead what to do and what to run",
    test: anyOf([
      ...[
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
        ".claude/",
        ".codex/",
        ".gemini/",
        ".cursor/",
        ".cursorrules",
      ],
      ...[".mcp.json", ".windsurfrules", ".github/copilot-instructions.md", "bulkhead.yaml", "bulkhead.json"],
    ]),
  },
  {
    id: "build-script",
    why: "runs when somebody builds, tests or installs",
    test: anyOf([
      ...[
        "Makefile",
        "GNUmakefile",
        "*.mk",
        "Makefile.*",
        "justfile",
        ".justfile",
        "Taskfile.y*ml",
        "Rakefile",
      ],
      ...["CMakeLists.txt", "*.cmake", "configure", "configure.ac", "meson.build", "BUILD", "BUILD.bazel"],
      ...["WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel", "*.bzl", "SConstruct", "SConscript", "wscript"],
      ...["setup.py", "setup.cfg", "pyproject.toml", "conftest.py", "noxfile.py", "tox.ini"],
      ...["build.rs", "build.zig", "build.gradle*", "settings.gradle*", "gradlew*", "gradle/wrapper/"],
      ...[
        "pom.xml",
        "mvnw*",
        ".mvn/",
        "build.sbt",
        "project/plugins.sbt",
        "build.xml",
        "*.csproj",
        "*.targets",
      ],
      ...[
        "Directory.Build.*",
        "binding.gyp",
        "Gruntfile.*",
        "gulpfile.*",
        "extconf.rb",
        "*.gemspec",
        "mix.exs",
      ],
      ...[
        "Package.swift",
        "Podfile",
        "Fastfile",
        "dune",
        "flake.nix",
        "default.nix",
        "shell.nix",
        "Vagrantfile",
      ],
      ...["webpack.config.*", "vite.config.*", "vitest.config.*", "rollup.config.*", "jest.config.*"],
      ...["babel.config.*", "next.config.*", "eslint.config.*", ".eslintrc*", "metro.config.*"],
      ...[
        "Dockerfile*",
        "Containerfile*",
        "*.Dockerfile",
        "docker-compose*.y*ml",
        "compose*.y*ml",
        "Tiltfile",
      ],
    ]),
  },
  {
    id: "package-scripts",
    why: "npm and its like run them, some at every install",
    test: (change) => isPackageJson(change) && "by-content",
    testContent: differsIn([
      ...["scripts", "bin", "husky", "lint-staged", "simple-git-hooks", "pre-commit"],
      ...["gypfile", "packageManager", "pnpm", "trustedDependencies"],
    ]),
  },
  {
    id: "dependencies",
    why: "brings other people's code in, which may run when it is installed",
    test: (change) => (isPackageJson(change) ? "by-content" : isDependencyList(change)),
    testContent: differsIn([
      ...["dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "overrides"],
      ...["resolutions", "bundleDependencies", "bundledDependencies", "imports"],
    ]),
  },
  {
    id: "lock-file",
    why: "decides where dependencies come from; few people read it",
    test: anyOf([
      ...["package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"],
      ...["deno.lock", "Cargo.lock", "go.sum", "Gemfile.lock", "poetry.lock", "uv.lock", "pdm.lock"],
      ...["Pipfile.lock", "composer.lock", "mix.lock", "pubspec.lock", "Podfile.lock", "Package.resolved"],
      ...["flake.lock", "gradle.lockfile", "packages.lock.json", "conan.lock", "*.lock"],
    ]),
  },
  {
    id: "tool-config",
    why: "is read by a tool that takes programs or servers from it as soon as it runs here",
    test: anyOf([
      ...[
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".yarn/",
        ".pnpmfile.cjs",
        "pnpm-workspace.yaml",
        "bunfig.toml",
      ],
      ...[
        ".pypirc",
        "pip.conf",
        ".cargo/config",
        ".cargo/config.toml",
        "rust-toolchain",
        "rust-toolchain.toml",
      ],
      ...[
        ".envrc",
        ".env",
        ".env.*",
        ".bashrc",
        ".bash_profile",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".inputrc",
      ],
      ...[
        ".tool-versions",
        ".mise.toml",
        "mise.toml",
        ".mise/",
        ".bundle/config",
        ".gemrc",
        ".curlrc",
        ".wgetrc",
      ],
      ...[
        ".netrc",
        ".ssh/",
        ".gdbinit",
        ".lldbinit",
        ".pdbrc",
        ".irbrc",
        "sitecustomize.py",
        "usercustomize.py",
      ],
      ...["*.pth", ".gradle/", "gradle.properties", "nuget.config", ".bazelrc", ".bazelversion", ".direnv/"],
    ]),
  },
  {
    id: "executable-bit",
    why: "can now be run by its name",
    test: ({ oldMode, newMode }) => newMode === EXECUTABLE && oldMode !== EXECUTABLE,
  },
  {
    id: "symlink",
    why: "makes a tool that reads or writes this path end up at another",
    test: ({ newMode }) => newMode === SYMLINK,
  },
];

/** `secrets` has a finder of its own (`secret-finder.ts`), and is allowed the same way. */
export const SECRETS_RULE = "secrets";
export const ALLOW_ALL = "all";

/** All that can stand behind `--allow`. */
export const ALLOWABLE: readonly string[] = [
  SECRETS_RULE,
  PROTECTED_RULE,
  ...RISK_RULES.map(({ id }) => id),
  ALLOW_ALL,
];

/** Why a rule is there; the empty text for one that a later version had. */
export function explainRisk(id: string): string {
  if (id === PROTECTED_RULE) return "is named in `protect`";
  return RISK_RULES.find((rule) => rule.id === id)?.why ?? "";
}

function isPackageJson({ path }: RiskyChange): boolean {
  return /(?:^|\/)package\.json$/i.test(path);
}

const isDependencyList = anyOf([
  ...["requirements*.txt", "constraints*.txt", "Pipfile", "environment.y*ml", "Cargo.toml"],
  ...["go.mod", "go.work", "Gemfile", "composer.json", "deno.json", "deno.jsonc", "pubspec.yaml"],
  ...["Cartfile", "vcpkg.json", "conanfile.*", "rebar.config", "packages.config", "libs.versions.toml"],
]);

/**
 * A test for paths. A pattern holds at any depth, for names or for the end of a path, whatever the case (the next checkout may be
 * on a system that does not tell); `*` stays within a name, a `/` at the end means all that is below.
 */
function anyOf(patterns: readonly string[]): (change: RiskyChange) => boolean {
  const sources = patterns.map((pattern) => {
    const source = pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", "[^/]*");
    // The directory's own name too: a link or a file may take its place.
    return pattern.endsWith("/") ? `${source.slice(0, -1)}(?:/.*)?` : source;
  });
  const expression = new RegExp(`(?:^|/)(?:${sources.join("|")})$`, "is");
  return ({ path }) => expression.test(path);
}

/** Whether two JSON objects differ in one of the fields. What is no JSON object, or was not read, differs from everything. */
function differsIn(fields: readonly string[]): (before: RiskContent, after: RiskContent) => boolean {
  return (before, after) => {
    const [old, now] = [parseObject(before), parseObject(after)];
    if (old === null || now === null) return true;
    return fields.some((field) => JSON.stringify(old[field]) !== JSON.stringify(now[field]));
  };
}

function parseObject(content: RiskContent): Readonly<Record<string, unknown>> | null {
  if (content === null) return {};
  try {
    const value: unknown = JSON.parse(content);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null; // Some tools read more than JSON; better one flag too many.
  }
}
