/** The table of attacks in docs/security.md, from the tests themselves: `node scripts/attack-table.ts` writes it anew. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const FOLDER = new URL("../test/attacks/", import.meta.url);
export const SECURITY_PAGE = new URL("../docs/security.md", import.meta.url);
const [BEGIN, END] = ["<!-- attacks: begin -->", "<!-- attacks: end -->"];

/** `id: "x/y", claim: "…"`, or the first two arguments of a helper that takes them. */
const ATTACK = /"([a-z-]+\/[a-z0-9-]+)",\s*(?:claim:\s*)?"((?:[^"\\]|\\.)+)"/g;

/** Every attack in the tests: id and what the attacker would say to have done. */
export function readAttacks(): ReadonlyArray<{ readonly id: string; readonly claim: string }> {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".test.ts"));
  return files.sort().flatMap((file) => {
    const source = readFileSync(new URL(file, FOLDER), "utf8");
    return [...source.matchAll(ATTACK)].map(([, id = "", claim = ""]) => ({
      id,
      claim: JSON.parse(`"${claim}"`) as string,
    }));
  });
}

/** The page with its table replaced. */
export function withAttackTable(page: string): string {
  const [before, rest] = page.split(BEGIN, 2);
  const after = rest?.split(END, 2)[1];
  if (before === undefined || after === undefined) throw new Error(`the page has no ${BEGIN} … ${END}`);
  const attacks = readAttacks();
  const rows = attacks.map(({ id, claim }) => `| \`${id}\` | ${claim.replaceAll("|", "\\|")} |`);
  const table = [`${attacks.length} attacks:`, "", "| id | the attacker |", "| --- | --- |", ...rows];
  return `${before}${BEGIN}\n${table.join("\n")}\n${END}${after}`;
}

if (import.meta.main) writeFileSync(SECURITY_PAGE, withAttackTable(readFileSync(SECURITY_PAGE, "utf8")));
