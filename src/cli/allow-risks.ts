import { InvalidArgumentError } from "commander";
import { RunnerError } from "../model/runner-error.ts";
import { ALLOW_ALL, ALLOWABLE, SECRETS_RULE } from "../policy/risks.ts";
import type { ChosenPatches } from "./choose-patches.ts";
import { describeRisks, describeSecrets } from "./render/task-words.ts";

/** Reads `--allow RULE[,RULE]`, which may be given more than once. */
export function parseAllowed(value: string, before: readonly string[] = []): readonly string[] {
  const rules = value.split(",").map((rule) => rule.trim());
  const unknown = rules.find((rule) => !ALLOWABLE.includes(rule));
  if (unknown !== undefined) throw new InvalidArgumentError(`Allowed choices are ${ALLOWABLE.join(", ")}.`);
  return [...before, ...rules];
}

/**
 * Refuses patches with a change that a person has to agree to and has not: one on the risk list, which would do something by itself,
 * or what looks like a secret, which is published once it is committed. All of it is said at once, with the rules to allow.
 */
export function refuseUnallowed(chosen: ChosenPatches, allowed: readonly string[]): void {
  if (allowed.includes(ALLOW_ALL)) return;
  const flagged = chosen.patches.map(({ taskId, patch }) => ({
    task: taskId,
    secrets: allowed.includes(SECRETS_RULE) ? [] : (patch.secrets ?? []),
    risks: (patch.risks ?? []).filter(({ rule }) => !allowed.includes(rule)),
  }));
  const withSecrets = flagged.filter(({ secrets }) => secrets.length > 0);
  const withRisks = flagged.filter(({ risks }) => risks.length > 0);
  if (withSecrets.length === 0 && withRisks.length === 0) return;
  const secretLines = withSecrets.flatMap(({ task, secrets }) =>
    describeSecrets(secrets).map((line) => `\n  ${task}: ${line}`),
  );
  const riskLines = withRisks.flatMap(({ task, risks }) =>
    describeRisks(risks).map((line) => `\n  ${task}: ${line}`),
  );
  const parts = [
    ...(secretLines.length === 0 ? [] : [`the patches hold what looks like secrets:${secretLines.join("")}`]),
    ...(riskLines.length === 0
      ? []
      : [`the patches change files that do something by themselves:${riskLines.join("")}`]),
  ];
  const rules = [
    ...(withSecrets.length === 0 ? [] : [SECRETS_RULE]),
    ...new Set(withRisks.flatMap(({ risks }) => risks.map(({ rule }) => rule))),
  ];
  throw new RunnerError("apply-refused", parts.join("\n"), {
    data: {
      secrets: withSecrets.map(({ task, secrets }) => ({ task, secrets })),
      risks: withRisks.map(({ task, risks }) => ({ task, risks })),
      allow: rules,
    },
    hint: `look with \`bulkhead diff\`; \`--allow ${rules.join(",")}\` takes them all the same, or leave the tasks out`,
  });
}
