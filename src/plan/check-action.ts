import type { FieldProblem } from "./explain-issue.ts";

const ACTIONS = ["run", "command", "prompt"] as const;

/**
 * What the fields of a task mean together: exactly one says what to do, one names it. Works on what was written, also where single
 * fields are wrong, so that a person sees all problems at once.
 */
export function checkAction(task: Readonly<Record<string, unknown>>): readonly FieldProblem[] {
  const problems: FieldProblem[] = [];
  const given = ACTIONS.filter((name) => task[name] !== undefined);
  const [first, second] = given;

  if (task["id"] === undefined && task["task_id"] === undefined) {
    problems.push({
      path: ["id"],
      value: undefined,
      message: "is missing",
      allowed: "a name, e.g. id: auth",
    });
  } else if (task["id"] !== undefined && task["task_id"] !== undefined) {
    problems.push({
      path: ["task_id"],
      value: task["task_id"],
      message: "is another name for id, and both are given",
      allowed: "id alone",
    });
  }
  if (first === undefined) {
    problems.push({
      path: [],
      value: undefined,
      message: "says nothing to do",
      allowed: "run (a shell script), prompt (for an agent) or command (arguments of an agent)",
    });
  } else if (second !== undefined) {
    problems.push({
      path: [second],
      value: task[second],
      message: `is given together with ${first}`,
      allowed: "exactly one of run, command, prompt",
    });
  } else if (first === "run" && task["agent"] !== undefined) {
    problems.push({
      path: ["agent"],
      value: task["agent"],
      message: "is given together with run, which needs no agent",
      allowed: "run alone, or agent with prompt or command",
    });
  }
  if (task["shell"] !== undefined && task["run"] === undefined) {
    problems.push({
      path: ["shell"],
      value: task["shell"],
      message: "is given without run",
      allowed: "shell with run only",
    });
  }
  return problems;
}
