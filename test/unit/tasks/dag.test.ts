import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { taskIdSchema } from "../../../src/model/ids.ts";
import { addNode, addNodes, buildDag, checkNodes, type Dag, type DagNode } from "../../../src/tasks/dag.ts";

const id = (name: string) => taskIdSchema.parse(name);

function node(name: string, ...dependsOn: string[]): DagNode {
  return { id: id(name), dependsOn: dependsOn.map(id), priority: 100 };
}

function built(nodes: readonly DagNode[]): Dag {
  const result = buildDag(nodes);
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

function problems(nodes: readonly DagNode[]): unknown {
  const result = buildDag(nodes);
  return result.ok ? [] : result.error;
}

describe("buildDag", () => {
  test("links both ways by plan order, whatever order the tasks are written in", () => {
    const dag = built([node("d", "b", "c"), node("b", "a"), node("c", "a", "a"), node("a")]);
    expect(dag.ids).toEqual(["d", "b", "c", "a"]);
    expect(dag.dependencies).toEqual([[1, 2], [3], [3], []]);
    expect(dag.dependents).toEqual([[], [0], [0], [1, 2]]);
    expect(dag.indexes.get(id("c"))).toBe(2);
  });

  test("an empty plan is a graph without tasks", () => {
    expect(built([]).ids).toEqual([]);
  });

  test("shows the path of a cycle, from a task to what it waits for", () => {
    expect(
      problems([node("top", "a"), node("a", "b"), node("b", "c"), node("c", "a"), node("leaf")]),
    ).toEqual([{ kind: "cycle", path: ["a", "b", "c", "a"] }]);
  });

  test("reports cycles that do not touch each as one", () => {
    expect(problems([node("a", "b"), node("b", "a"), node("x", "y"), node("y", "x")])).toEqual([
      { kind: "cycle", path: ["a", "b", "a"] },
      { kind: "cycle", path: ["x", "y", "x"] },
    ]);
  });

  test("reports every problem of every kind at once", () => {
    expect(
      problems([node("a", "a"), node("b", "nope"), node("b"), node("b"), node("c", "d"), node("d", "c")]),
    ).toEqual([
      { kind: "duplicate-id", id: "b", indexes: [1, 2, 3] },
      { kind: "self-dependency", id: "a" },
      { kind: "unknown-dependency", id: "b", dependency: "nope", nearest: null },
      { kind: "cycle", path: ["c", "d", "c"] },
    ]);
  });

  test("suggests the id that was probably meant, of the plan or of the run, never the task itself", () => {
    expect(problems([node("build-api"), node("build-app", "build_apo")])).toMatchObject([
      { nearest: "build-api" },
    ]);
    const dag = built([node("parser")]);
    expect(checkNodes(dag, [node("lexer", "praser"), node("parses", "parsed")])).toMatchObject([
      { dependency: "praser", nearest: "parser" },
      { dependency: "parsed", nearest: "parser" },
    ]);
    expect(dag.ids).toEqual(["parser"]);
  });

  test("a plan in which every dependency is unknown is refused in full, without comparing each with each", () => {
    const nodes = Array.from({ length: 10_000 }, (_, i) => node(`task-${i}`, `tusk-${i}`));
    const found = checkNodes(built([]), nodes);
    expect(found).toHaveLength(10_000);
    expect(found.filter((one) => one.kind === "unknown-dependency" && one.nearest !== null)).toHaveLength(20);
  });

  test("a chain of 100,000 tasks is built, and closed to a ring it is refused with its whole path", () => {
    const count = 100_000;
    const chain = Array.from({ length: count }, (_, i) =>
      i === 0 ? node("t0") : node(`t${i}`, `t${i - 1}`),
    );
    expect(built(chain).dependents[count - 2]).toEqual([count - 1]);
    chain[0] = node("t0", `t${count - 1}`);
    const result = buildDag(chain);
    expect(result.ok ? [] : result.error).toHaveLength(1);
    expect(result).toMatchObject({ error: [{ kind: "cycle" }] });
    if (!result.ok && result.error[0]?.kind === "cycle") expect(result.error[0].path).toHaveLength(count + 1);
  });
});

describe("addNode", () => {
  test("grows the graph behind what is there", () => {
    const dag = built([node("a"), node("b", "a")]);
    expect(addNode(dag, node("c", "b", "a")).ok).toBe(true);
    expect(dag.dependencies[2]).toEqual([0, 1]);
    expect(dag.dependents).toEqual([[1, 2], [2], []]);
  });

  test("refuses an id that is there, one that is not, and itself, and leaves the graph as it was", () => {
    const dag = built([node("a")]);
    const before = structuredClone(dag);
    expect(addNode(dag, node("a"))).toEqual({
      ok: false,
      error: [{ kind: "duplicate-id", id: "a", indexes: [-1, 0] }],
    });
    expect(addNode(dag, node("b", "zz"))).toMatchObject({ error: [{ kind: "unknown-dependency" }] });
    expect(addNode(dag, node("b", "b"))).toEqual({
      ok: false,
      error: [{ kind: "self-dependency", id: "b" }],
    });
    expect(addNodes(dag, [node("b", "c"), node("c", "b", "a")])).toEqual({
      ok: false,
      error: [{ kind: "cycle", path: ["b", "c", "b"] }],
    });
    expect(dag).toEqual(before);
  });

  test("one task at a time gives the same graph as all at once", () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.nat(50), { maxLength: 4 }), { maxLength: 40 }), (edges) => {
        const nodes = edges.map((targets, i) =>
          node(`t${i}`, ...targets.filter((target) => target < i).map((target) => `t${target}`)),
        );
        const grown = built([]);
        for (const one of nodes) expect(addNode(grown, one).ok).toBe(true);
        expect(grown).toEqual(built(nodes));
      }),
    );
  });
});

test("a random graph is refused exactly when it has a cycle, and each path it shows is one", () => {
  const graphs = fc.array(fc.array(fc.nat(14), { maxLength: 3 }), { minLength: 1, maxLength: 15 });
  fc.assert(
    fc.property(graphs, (edges) => {
      const nodes = edges.map((targets, i) => node(`t${i}`, ...targets.map((t) => `t${t % edges.length}`)));
      const clean = nodes.map((one) => ({
        ...one,
        dependsOn: one.dependsOn.filter((dep) => dep !== one.id),
      }));
      const result = buildDag(clean);
      expect(result.ok).toBe(!hasCycleByRemoval(clean));
      if (result.ok) return;
      for (const problem of result.error) {
        if (problem.kind !== "cycle") throw new Error(`unexpected ${problem.kind}`);
        expect(problem.path.at(-1)).toBe(problem.path[0]);
        expect(new Set(problem.path).size).toBe(problem.path.length - 1);
        for (const [i, here] of problem.path.slice(0, -1).entries()) {
          expect(clean.find((one) => one.id === here)?.dependsOn).toContain(problem.path[i + 1]);
        }
      }
    }),
    { numRuns: 500 },
  );
});

/** The plain definition, slow: take off what waits for nothing until nothing moves. */
function hasCycleByRemoval(nodes: readonly DagNode[]): boolean {
  let rest = [...nodes];
  for (;;) {
    const ids = new Set(rest.map((one) => one.id));
    const next = rest.filter((one) => one.dependsOn.some((dep) => ids.has(dep)));
    if (next.length === rest.length) return rest.length > 0;
    rest = next;
  }
}
