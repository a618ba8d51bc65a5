import type { TaskState } from "../../observe/run-view.ts";
import { sanitizeForTerminal } from "../../util/sanitize-text.ts";
import { fitToWidth, truncateToWidth } from "./display-width.ts";
import { type Palette, STATE_STYLES } from "./palette.ts";

/** A node of the drawing; `state` is null where it is a plan that was never run. */
export interface GraphNode {
  readonly id: string;
  readonly title: string;
  readonly dependsOn: readonly string[];
  readonly priority: number;
  readonly state: TaskState | null;
}

export type GraphFormat = "text" | "dot" | "mermaid" | "json";
export const GRAPH_FORMATS: readonly GraphFormat[] = ["text", "dot", "mermaid", "json"];

/**
 * Levels of an acyclic graph: a task is one level below the deepest of its dependencies, so all tasks of a level could run at once.
 * O(nodes + edges), without recursion: a chain can be as long as a plan.
 */
export function levelsOf(nodes: readonly GraphNode[]): GraphNode[][] {
  const level = new Map<string, number>();
  const missing = new Map<string, number>();
  const dependents = new Map<string, GraphNode[]>();
  const known = new Set(nodes.map((node) => node.id));
  for (const node of nodes) {
    const needs = new Set(node.dependsOn.filter((id) => known.has(id)));
    missing.set(node.id, needs.size);
    for (const id of needs) {
      const list = dependents.get(id);
      if (list === undefined) dependents.set(id, [node]);
      else list.push(node);
    }
  }
  const queue = nodes.filter((node) => missing.get(node.id) === 0);
  for (const node of queue) {
    const below = (level.get(node.id) ?? 0) + 1;
    for (const dependent of dependents.get(node.id) ?? []) {
      level.set(dependent.id, Math.max(level.get(dependent.id) ?? 0, below));
      const left = (missing.get(dependent.id) ?? 1) - 1;
      missing.set(dependent.id, left);
      if (left === 0) queue.push(dependent);
    }
  }
  const levels: GraphNode[][] = [];
  for (const node of nodes) {
    const at = level.get(node.id) ?? 0;
    while (levels.length <= at) levels.push([]);
    levels[at]?.push(node);
  }
  return levels;
}

/** Draws the graph in one of the formats; ends with a newline. */
export function renderGraph(
  nodes: readonly GraphNode[],
  options: { format: GraphFormat; palette: Palette; columns: number },
): string {
  switch (options.format) {
    case "text":
      return renderText(nodes, options.palette, options.columns);
    case "dot":
      return renderDot(nodes);
    case "mermaid":
      return renderMermaid(nodes);
    case "json":
      return renderJson(nodes);
  }
}

const MAX_ID_COLUMNS = 32;

function renderText(nodes: readonly GraphNode[], palette: Palette, columns: number): string {
  const arrow = palette.isUnicode ? "←" : "<-";
  const width = nodes.reduce((max, node) => Math.min(MAX_ID_COLUMNS, Math.max(max, node.id.length)), 4);
  const lines: string[] = [];
  levelsOf(nodes).forEach((tasks, index) => {
    lines.push(palette.paint("bold", `Level ${index + 1}`));
    for (const node of tasks.toSorted((a, b) => a.priority - b.priority)) {
      const mark =
        node.state === null ? "" : `${palette.paint(STATE_STYLES[node.state], palette.marks[node.state])} `;
      const title = node.title === node.id ? "" : sanitizeForTerminal(node.title);
      const needs = node.dependsOn.length === 0 ? "" : `${arrow} ${node.dependsOn.join(", ")}`;
      const rest = [needs, title].filter((part) => part !== "").join("  ");
      const room = columns - 1 - 2 - (node.state === null ? 0 : 2) - width - 2;
      const id = palette.paint(
        node.state === null ? "cyan" : STATE_STYLES[node.state],
        fitToWidth(node.id, width),
      );
      lines.push(`  ${mark}${id}  ${palette.paint("dim", truncateToWidth(rest, room))}`.trimEnd());
    }
  });
  return lines.length === 0 ? "no tasks\n" : `${lines.join("\n")}\n`;
}

const DOT_COLORS: Readonly<Record<TaskState, string>> = {
  waiting: "gray80",
  running: "lightskyblue",
  retrying: "khaki",
  succeeded: "palegreen",
  failed: "salmon",
  held: "navajowhite",
  cancelled: "gray60",
};

function renderDot(nodes: readonly GraphNode[]): string {
  const quote = (text: string): string => `"${text.replace(/[\\"]/g, "\\$&")}"`;
  const lines = nodes.map((node) => {
    const title = node.title === node.id ? node.id : `${node.id}\n${sanitizeForTerminal(node.title)}`;
    const label = quote(title).replaceAll("\n", "\\n");
    const fill = node.state === null ? "" : `, style=filled, fillcolor=${DOT_COLORS[node.state]}`;
    return `  ${quote(node.id)} [label=${label}${fill}];`;
  });
  const edges = nodes.flatMap((node) => node.dependsOn.map((id) => `  ${quote(id)} -> ${quote(node.id)};`));
  return ["digraph bulkhead {", "  rankdir=LR;", "  node [shape=box];", ...lines, ...edges, "}", ""].join(
    "\n",
  );
}

function renderMermaid(nodes: readonly GraphNode[]): string {
  // Ids may be words that mermaid keeps for itself ("end"), so nodes are numbered and named by their label.
  const name = new Map(nodes.map((node, index) => [node.id, `t${index}`]));
  const encode = (text: string): string =>
    sanitizeForTerminal(text).replace(/[^\p{L}\p{N} ._,:/-]/gu, (c) => `#${c.codePointAt(0) ?? 35};`);
  const lines = nodes.map((node) => {
    const title = node.title === node.id ? "" : `<br/>${encode(node.title)}`;
    const state = node.state === null ? "" : `:::${node.state}`;
    return `  ${name.get(node.id)}["${encode(node.id)}${title}"]${state}`;
  });
  const edges = nodes.flatMap((node) =>
    node.dependsOn.filter((id) => name.has(id)).map((id) => `  ${name.get(id)} --> ${name.get(node.id)}`),
  );
  const colors = { succeeded: "#c8f7c5", failed: "#ffb3a7", held: "#ffe0b0", running: "#bfe3ff" };
  const used = Object.entries(colors).filter(([state]) => nodes.some((node) => node.state === state));
  return ["flowchart LR", ...lines, ...edges, ...used.map(([s, c]) => `  classDef ${s} fill:${c};`), ""].join(
    "\n",
  );
}

function renderJson(nodes: readonly GraphNode[]): string {
  const tasks = levelsOf(nodes).flatMap((level, index) =>
    level.map((node) => ({
      id: node.id,
      title: node.title,
      level: index + 1,
      priority: node.priority,
      depends_on: node.dependsOn,
      state: node.state,
    })),
  );
  return `${JSON.stringify({ version: 1, tasks }, null, 2)}\n`;
}
