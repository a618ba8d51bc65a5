import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatProblem } from "../../../src/plan/plan-problem.ts";
import { parseSourceText, type TextFormat } from "../../../src/plan/source-text.ts";

function values(text: string, format: TextFormat = "auto"): readonly unknown[] {
  const parsed = parseSourceText(text, "f", format);
  return parsed.ok ? parsed.value.map(({ value }) => value) : parsed.error.map(formatProblem);
}

function lineOf(
  text: string,
  format: TextFormat,
  path: readonly PropertyKey[],
  index = 0,
): number | undefined {
  const parsed = parseSourceText(text, "f", format);
  return parsed.ok ? parsed.value[index]?.lineOf(path) : undefined;
}

describe("strict JSON", () => {
  test.each<[string, string]>([
    ['{"a": 1,\n "b": 2,}', "f:2: not valid JSON at column 9: a comma before }"],
    ["[1,\n2,\n]", "f:3: not valid JSON at column 1: a comma before ]"],
    ['{"a" 1}', 'f:1: not valid JSON at column 6: a colon must follow the key "a"'],
    ['{"a": 1 "b": 2}', "f:1: not valid JSON at column 9: a comma or } must follow"],
    ["[1 2]", "f:1: not valid JSON at column 4: a comma or ] must follow"],
    ["{a: 1}", "f:1: not valid JSON at column 2: a key must be in double quotes"],
    ['{"a": yes}', 'f:1: not valid JSON at column 7: "yes" is not JSON; text needs double quotes'],
    ["{\"a\": 'x'}", "f:1: not valid JSON at column 7: \"'x'\" is not JSON; text needs double quotes"],
    ['{"a": "x', "f:1: not valid JSON at column 7: a string does not end"],
    [
      '{"a": "x\ny"}',
      "f:1: not valid JSON at column 7: a string must end on its line; write a line end as \\n",
    ],
    [
      '{"a": "x\ty"}',
      "f:1: not valid JSON at column 9: a string holds a bare control character; write it as \\uXXXX",
    ],
    [
      '"\\x41"',
      'f:1: not valid JSON at column 2: an unknown escape; there are \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX',
    ],
    ["{} {}", "f:1: not valid JSON at column 4: nothing may follow the value"],
    ['{"a":', "f:1: not valid JSON at column 6: the text ends too early"],
    ["01", "f:1: not valid JSON at column 2: nothing may follow the value"],
    ["// no\n{}", 'f:1: not valid JSON at column 1: "/" is not JSON'],
    ["[".repeat(100_000), "f:1: not valid JSON at column 66: nested more than 64 deep"],
    ['{"a": 1,\n "c": {"b": 1,\n "b": 2}}', "f:3: c.b: is given twice"],
    ["  \n", "f: is empty; a task needs at least id and run"],
  ])("refuses %j", (text, expected) => {
    expect(values(text, "json")).toEqual([expected]);
  });

  test("reads whatever JSON.stringify writes, to the same value", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom(0, 2), (text, indent) => {
        const pretty = JSON.stringify(JSON.parse(text), null, indent);
        expect(values(pretty, "json")).toEqual([JSON.parse(text)]);
      }),
    );
  });

  test("refuses whatever JSON.parse refuses", () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.nat(),
        fc.constantFrom(",", "}", "]", '"', "\\", "x", "-", "."),
        (text, place, odd) => {
          const at = place % (text.length + 1);
          const broken = text.slice(0, at) + odd + text.slice(at);
          const parsed = parseSourceText(broken, "f", "json");
          let isValid = true;
          try {
            JSON.parse(broken);
          } catch {
            isValid = false;
          }
          // A key given twice is the one thing that JSON.parse lets pass.
          const isRepeat = !parsed.ok && parsed.error[0]?.message === "is given twice";
          expect(parsed.ok || isRepeat).toBe(isValid || isRepeat);
        },
      ),
    );
  });

  test("a string of megabytes", () => {
    const long = "ä\n".repeat(1_000_000);
    expect(values(JSON.stringify({ run: long }), "json")).toEqual([{ run: long }]);
  });

  test("knows the lines", () => {
    const text = '{\n  "a": [\n    {"b": 1},\n    {\n      "c": 2 }\n  ]\n}';
    expect(lineOf(text, "json", ["a", 1, "c"])).toBe(5);
    expect(lineOf(text, "json", ["a", 1, "missing"])).toBe(4);
    expect(lineOf(text, "json", [])).toBe(1);
  });
});

describe("YAML", () => {
  test.each<[string, string]>([
    ["a: [1\nb: 2", "f:2: not valid YAML at column 1: "],
    ["a: 1\n\tb: 2", "f:2: not valid YAML at column "],
    ["a: 1\nb:\n  a: 1\n  a: 2", "f:4: b.a: is given twice"],
    [
      "a: 1\n---\nb: !!js/function x",
      "f:3: not valid YAML at column 4: unresolved tag: tag:yaml.org,2002:js/function",
    ],
    ["a: !include x.yaml", "f:1: not valid YAML at column 4: unresolved tag: !include"],
    [
      "a: *x",
      "f: an alias (*name) has no anchor (&name) before it, or aliases repeat too much; at most 50 repeats are expanded",
    ],
    ["id: a\nenv: &e\n  b: [*e]", "f:3: the alias *e stands inside of its own anchor"],
    ["# nothing\n", "f: is empty; a task needs at least id and run"],
    ["---\n---\n", "f: is empty; a task needs at least id and run"],
    ["[".repeat(20_000), "f:1: nested more than 64 deep"],
    [`${"- ".repeat(70)}x`, "f:1: nested more than 64 deep"],
  ])("refuses %j", (text, expected) => {
    expect(values(text, "yaml")[0]).toEqual(expect.stringContaining(expected));
  });

  test("an alias bomb is refused before it goes off", () => {
    const bomb = ["a0: &a0 [x, x]"];
    for (let level = 1; level < 40; level += 1)
      bomb.push(`a${level}: &a${level} [*a${level - 1}, *a${level - 1}]`);
    expect(values(bomb.join("\n"), "yaml")).toEqual([expect.stringContaining("aliases repeat too much")]);
  });

  test("several documents, scalars of the 1.2 core schema, anchors, empty documents between", () => {
    expect(values("---\non: yes\nx: &x [1, 0x10]\n---\n---\ny: no\nd: 2020-01-01\n...\n", "yaml")).toEqual([
      { on: "yes", x: [1, 16] },
      { y: "no", d: "2020-01-01" },
    ]);
    expect(values("x: &x [1]\ny: *x", "yaml")).toEqual([{ x: [1], y: [1] }]);
  });

  test("a key __proto__ is a key", () => {
    const [value] = values("__proto__: {x: 1}", "yaml");
    expect(Object.hasOwn(value as object, "__proto__")).toBe(true);
  });

  test("knows the lines, also of the second document and behind Windows line ends", () => {
    const text = "a: 1\r\n---\r\nid: b\r\nrun: |\r\n  x\r\n  y\r\nlist:\r\n  - 1\r\n  - k: 2\r\n";
    expect(lineOf(text, "yaml", ["run"], 1)).toBe(4);
    expect(lineOf(text, "yaml", ["list", 1, "k"], 1)).toBe(9);
    expect(lineOf(text, "yaml", ["nope"], 1)).toBe(3);
  });
});

describe("a text without a name", () => {
  test.each<[string, unknown[]]>([
    ['{"id": "a"}', [{ id: "a" }]],
    ['{"id": "a"}\n{"id": "b"}\n', [{ id: "a" }, { id: "b" }]],
    ["id: a", [{ id: "a" }]],
    ["{id: a}", [{ id: "a" }]],
    ["- id: a", [[{ id: "a" }]]],
    ['{"id": "a"', ["f:1: not valid JSON at column 11: a comma or } must follow"]],
  ])("%j", (text, expected) => {
    expect(values(text)).toEqual(expected);
  });
});
