/** The part of docs/reasons.md about holds, as the book of holds has it. */
import { BOOK } from "../shared/core/rollout/book.ts";
import { CAUSES } from "../shared/core/rollout/causes.ts";
import type { Counted, HoldWords } from "../shared/core/rollout/hold-words.ts";

const TITLE = "## What holds a rollout";

/** `page`: docs/reasons.md; everything else in it stays as it is. @throws Error when the page has no such part */
export function withHolds(page: string): string {
  const [before, rest] = page.split(`${TITLE}\n`);
  if (before === undefined || rest === undefined) throw new Error(`docs/reasons.md has no heading "${TITLE}"`);
  return `${before}${part()}${rest.slice(rest.indexOf("\n## "))}`;
}

function part(): string {
  const intro =
    "`explain`, `check` and the page name these causes. `node infra/generate.ts` writes this part from the book of holds (`shared/core/rollout/book.ts`).";
  const causes = Object.entries(CAUSES).map(([cause, meaning]) => `### ${cause}\n\n${meaning}`);
  return `${[TITLE, intro, ...causes, "### Conditions of holds", table()].join("\n\n")}\n`;
}

/** A row for each hold: which conditions say it. */
function table(): string {
  const rows = Object.entries(BOOK).map(([hold, words]) => `| \`${hold}\` | ${cellsOf(words).join(" | ")} |`);
  return ["| hold | `Progressing` | state at rest | `Blocked` |", "|---|---|---|---|", ...rows].join("\n");
}

function cellsOf({ reason, verdict, blocked }: HoldWords): readonly string[] {
  return [fixed(reason), fixed(verdict), blocked?.reason ?? "never"];
}

function fixed(word: string | ((held: Counted) => string)): string {
  return typeof word === "string" ? word : "as its facts say";
}
