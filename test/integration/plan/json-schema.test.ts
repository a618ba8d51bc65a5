import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { generateSchemas } from "../../../src/plan/json-schema.ts";

const FOLDER = new URL("../../../schema/", import.meta.url);

test("the files in schema/ are those that the zod schemas give (node scripts/generate-schemas.ts writes them)", () => {
  const committed = Object.fromEntries(
    readdirSync(FOLDER).map((name) => [name, readFileSync(new URL(name, FOLDER), "utf8")]),
  );
  expect(committed).toEqual(generateSchemas());
});

describe("every field has a description", () => {
  test.each(Object.entries(generateSchemas()))("%s", (_, text) => {
    const missing: string[] = [];
    let fields = 0;
    const visit = (node: unknown, path: string): void => {
      if (typeof node !== "object" || node === null) return;
      for (const [name, child] of Object.entries(node)) {
        if (name === "properties") {
          for (const [field, schema] of Object.entries(child as Record<string, { description?: string }>)) {
            fields += 1;
            if (!schema.description) missing.push(`${path}.${field}`);
          }
        }
        // The alternatives under allOf only repeat names.
        if (name !== "allOf") visit(child, `${path}.${name}`);
      }
    };
    visit(JSON.parse(text), "");
    expect(missing).toEqual([]);
    expect(fields).toBeGreaterThan(30);
  });
});

describe("an editor judges as bulkhead does", () => {
  const schemas = generateSchemas();
  type JsonSchema = z.core.JSONSchema.JSONSchema;
  const accepts = (schema: JsonSchema, value: unknown): boolean =>
    z.fromJSONSchema(schema).safeParse(value).success;
  // zod reads a schema with allOf as an intersection, in which additional properties come free: the parts are asked one by one.
  const judge = (name: string, value: unknown): boolean => {
    const { allOf, ...rest } = JSON.parse(schemas[name] ?? "") as JsonSchema & { allOf?: JsonSchema[] };
    return [rest, ...(allOf ?? [])].every((part) => accepts(part, value));
  };

  test.each<[boolean, unknown]>([
    [
      true,
      {
        id: "a",
        run: "x",
        caps: { memory: "2GiB", cpus: 2 },
        timeout: "1h30m",
        depends_on: ["b"],
        env: { A: 1 },
      },
    ],
    [true, { task_id: "a", command: "--file x", retries: 3 }],
    [false, { id: "a", run: "x", caps: { memory: "12 elephants" } }],
    [false, { id: "a", run: "x", depend_on: [] }],
    [false, { id: "../a", run: "x" }],
    [false, { id: "a" }],
    [false, { run: "x" }],
    [false, { id: "a", run: "x", prompt: "y" }],
  ])("%s for %j", (valid, task) => {
    expect(judge("task.schema.json", task)).toBe(valid);
  });

  test("plans", () => {
    const task = { id: "a", run: "x" };
    expect(
      [task, [task], { tasks: [task], defaults: { timeout: 5 } }].map((value) =>
        judge("plan.schema.json", value),
      ),
    ).toEqual([true, true, true]);
    expect(
      [{ tasks: [{ id: "a" }] }, [5], { tasks: task }].map((value) => judge("plan.schema.json", value)),
    ).toEqual([false, false, false]);
  });
});
