/**
 * Decides which files of a commit go into a snapshot (row A2). Pure: paths in, yes or no out.
 *
 * Order of the rules: configuration of formatters, linters and git always stays, since work done without it comes out in the
 * wrong shape; then `exclude` removes, `include` chooses, and `tests: matching` thins out test files.
 */
import ignore from "ignore";
import type { FileFilter } from "../model/task.ts";

/** File names, in any directory, that are kept whatever the filter says. Gitignore syntax. */
const ALWAYS_KEPT: readonly string[] = [
  ".editorconfig",
  ".gitattributes",
  ".gitignore",
  ".gitmodules",
  ".pre-commit-config.yaml",
  // JavaScript, TypeScript, CSS
  ".prettierrc*",
  "prettier.config.*",
  ".prettierignore",
  "biome.json",
  "biome.jsonc",
  ".eslintrc*",
  "eslint.config.*",
  ".eslintignore",
  ".oxlintrc.json",
  "dprint.json",
  ".stylelintrc*",
  "stylelint.config.*",
  "deno.json",
  "deno.jsonc",
  // Python
  "ruff.toml",
  ".ruff.toml",
  "pyproject.toml",
  "setup.cfg",
  "tox.ini",
  ".flake8",
  ".pylintrc",
  "pylintrc",
  "mypy.ini",
  ".mypy.ini",
  ".isort.cfg",
  ".style.yapf",
  // C, C++
  ".clang-format",
  ".clang-format-ignore",
  ".clang-tidy",
  // Rust, Go, JVM, Ruby, PHP, Swift, shell and others
  "rustfmt.toml",
  ".rustfmt.toml",
  "clippy.toml",
  ".clippy.toml",
  ".golangci.*",
  "checkstyle.xml",
  ".scalafmt.conf",
  ".rubocop.yml",
  ".php-cs-fixer.php",
  ".php-cs-fixer.dist.php",
  "phpcs.xml",
  ".swiftlint.yml",
  ".swiftformat",
  ".shellcheckrc",
  ".yamllint*",
  ".markdownlint*",
  "analysis_options.yaml",
  ".formatter.exs",
  ".credo.exs",
];

const TEST_DIRECTORY = /^(?:tests?|specs?|__tests__)$/i;
const TEST_FILE =
  /^(?:test_.*\.py|.*_(?:test|spec)\.[^.]+|.*\.(?:test|spec|cy)\.[^.]+|.*Tests?\.(?:java|kt|cs|swift|scala))$/;
/** Data that tests share; also where it holds files named like tests. */
const FIXTURE_DIRECTORY = /^(?:fixtures?|__fixtures__|__mocks__|__snapshots__|testdata|test[-_]data)$/i;
const HELPER_DIRECTORY = /^(?:helpers?|support|utils?|common|shared|mocks?)$/i;
const SHARED_FILE =
  /^(?:conftest\.py|__init__\.py|(?:.*[._-])?(?:setup|helpers?|fixtures?|utils?)(?:[._-].*)?\.[^.]+|setupTests\.[^.]+|TestHelper.*)$/i;

/** Whether a filter lets every tracked file in, so that the snapshot can be the commit itself. */
export function isWholeTree(filter: FileFilter): boolean {
  return filter.include.length === 0 && filter.exclude.length === 0 && !choosesTests(filter);
}

/** Makes the predicate of a filter. Paths are relative to the top of the repository, with `/`. */
export function createFileFilter(filter: FileFilter): (path: string) => boolean {
  if (isWholeTree(filter)) return () => true;
  const kept = matcher(ALWAYS_KEPT);
  const included = filter.include.length === 0 ? () => true : matcher(filter.include);
  const excluded = matcher(filter.exclude);
  const keywords = filter.keywords.map(fold).filter((keyword) => keyword !== "");
  return (path) => {
    if (kept(path)) return true;
    if (excluded(path) || !included(path)) return false;
    if (!choosesTests(filter) || !isTest(path) || isShared(path)) return true;
    return path.split("/").some((part) => keywords.some((keyword) => fold(part).includes(keyword)));
  };
}

/** Makes a gitignore-style predicate. */
export function matcher(patterns: readonly string[]): (path: string) => boolean {
  const rules = ignore({ ignorecase: false, allowRelativePaths: true }).add([...patterns]);
  return (path) => rules.ignores(path);
}

/** Without a keyword there is nothing to choose by, and all tests stay. */
function choosesTests(filter: FileFilter): boolean {
  return filter.tests === "matching" && filter.keywords.some((keyword) => fold(keyword) !== "");
}

function isTest(path: string): boolean {
  const parts = path.split("/");
  const name = parts.pop() ?? "";
  return TEST_FILE.test(name) || parts.some((part) => TEST_DIRECTORY.test(part));
}

function isShared(path: string): boolean {
  const parts = path.split("/");
  const name = parts.pop() ?? "";
  if (parts.some((part) => FIXTURE_DIRECTORY.test(part)) || name === "conftest.py") return true;
  if (TEST_FILE.test(name)) return false;
  return SHARED_FILE.test(name) || parts.some((part) => HELPER_DIRECTORY.test(part));
}

/** `LoginForm`, `login-form` and `login_form` are one word here. */
function fold(text: string): string {
  return text.toLowerCase().replace(/[\s._-]+/g, "");
}
