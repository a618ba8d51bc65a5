import { describe, expect, test } from "vitest";
import type { FileFilter } from "../../../src/model/task.ts";
import { createFileFilter, isWholeTree } from "../../../src/workspace/filter-files.ts";

const ALL: FileFilter = { include: [], exclude: [], tests: "all", keywords: [], history: 1, extra: [] };

/** Which of the paths a filter keeps. */
function kept(over: Partial<FileFilter>, paths: readonly string[]): string[] {
  return paths.filter(createFileFilter({ ...ALL, ...over }));
}

describe("include and exclude", () => {
  const paths = [
    "README.md",
    "src/a.ts",
    "src/b/c.ts",
    "docs/src/x.ts",
    "src/a.md",
    "größe/ü.txt",
    "a b/c\nd",
  ];

  test("an empty include is everything", () => {
    expect(kept({}, paths)).toEqual(paths);
    expect(kept({ exclude: ["*.md"] }, paths)).toEqual(paths.filter((path) => !path.endsWith(".md")));
  });

  test("patterns are gitignore's: anchored, unanchored, directories, negation", () => {
    expect(kept({ include: ["/src/"] }, paths)).toEqual(["src/a.ts", "src/b/c.ts", "src/a.md"]);
    expect(kept({ include: ["src/"] }, paths)).toEqual([
      "src/a.ts",
      "src/b/c.ts",
      "docs/src/x.ts",
      "src/a.md",
    ]);
    expect(kept({ include: ["*.ts", "!c.ts"] }, paths)).toEqual(["src/a.ts", "docs/src/x.ts"]);
    expect(kept({ include: ["größe/", "a b/"] }, paths)).toEqual(["größe/ü.txt", "a b/c\nd"]);
    expect(kept({ include: ["Src/"] }, paths)).toEqual([]);
  });

  test("exclude wins over include", () => {
    expect(kept({ include: ["src/"], exclude: ["src/b/"] }, ["src/a", "src/b/c"])).toEqual(["src/a"]);
  });
});

describe("configuration", () => {
  const configuration = [
    ".editorconfig",
    ".prettierrc.json",
    "packages/a/.prettierrc",
    "biome.json",
    "eslint.config.mjs",
    "python/ruff.toml",
    "pyproject.toml",
    "setup.cfg",
    ".clang-format",
    "rustfmt.toml",
    ".golangci.yml",
    ".pre-commit-config.yaml",
    ".gitattributes",
    "deep/down/.gitignore",
  ];

  test.each(configuration)("%s stays whatever the filter says", (path) => {
    expect(kept({ include: ["nothing"], exclude: ["*"] }, [path, "other"])).toEqual([path]);
  });
});

describe("tests: matching", () => {
  const over = { tests: "matching", keywords: ["loginForm", "tax"] } as const;

  test.each([
    "tests/test_login_form.py",
    "src/login-form.test.ts",
    "src/LoginForm.spec.tsx",
    "spec/tax/rates_spec.rb",
    "pkg/tax_test.go",
    "src/__tests__/taxes.js",
  ])("%s matches", (path) => {
    expect(kept(over, [path])).toEqual([path]);
  });

  test.each([
    "tests/test_cart.py",
    "src/cart.test.ts",
    "test/unit/deep/cart.ts",
    "pkg/cart_test.go",
    "src/__tests__/cart.js",
    "src/utils/cart.test.ts",
    "src/CartTest.java",
  ])("%s does not", (path) => {
    expect(kept(over, [path])).toEqual([]);
  });

  test.each([
    "src/cart.ts",
    "src/contest.ts",
    "src/latest/x.ts",
    "tests/conftest.py",
    "tests/__init__.py",
    "tests/fixtures/cart.json",
    "src/__fixtures__/cart.test.ts",
    "pkg/testdata/x_test.go",
    "test/helpers/server.ts",
    "test/setup.ts",
    "test/jest.setup.js",
    "spec/spec_helper.rb",
    "src/setupTests.ts",
  ])("%s is shared or no test", (path) => {
    expect(kept(over, [path])).toEqual([path]);
  });

  test("without a keyword there is nothing to choose by", () => {
    expect(kept({ tests: "matching", keywords: [" - "] }, ["tests/test_cart.py"])).toEqual([
      "tests/test_cart.py",
    ]);
    expect(isWholeTree({ ...ALL, tests: "matching" })).toBe(true);
    expect(isWholeTree({ ...ALL, ...over })).toBe(false);
  });
});
