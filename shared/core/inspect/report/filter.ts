/** Decides what the rows of a page can be filtered by. The page's script does it, and without a script there is no filter. */
import type { ReportContent } from "./content.ts";
import { type Html, html } from "./html.ts";
import type { Standing } from "./pod-standing.ts";
import { UNSEEN } from "./tables.ts";
import { STANDINGS, standingName } from "./words.ts";

/** So few are seen at a glance. */
const FEW = 3;

/** undefined: there is too little to filter */
export function filterOf({ sets = [], details }: ReportContent): Html | undefined {
  const isList = sets.length !== 1 || details.length === 0;
  const verdicts = isList ? sets.map(({ verdict }) => verdict ?? "unseen") : [];
  const standings = details.flatMap(({ pods }) => pods.map(({ standing }) => standing));
  if (verdicts.length + standings.length <= FEW) return undefined;
  const options = [
    ...counted(verdicts, (verdict) => (verdict === "unseen" ? UNSEEN : verdict)),
    ...counted(standings.toSorted(byOrder), standingName),
  ];
  return html`<div class="filter" role="search" hidden>
<input type="search" aria-label="Filter by name or namespace" placeholder="Name or namespace" autocomplete="off" autocapitalize="off" spellcheck="false">
<select aria-label="Filter by state"><option value="">Any state</option>${options}</select>
<output></output></div>`;
}

function counted<State extends string>(states: readonly State[], nameOf: (state: State) => string): readonly Html[] {
  return [...Map.groupBy(states, (state) => state)].map(
    ([state, { length }]) => html`<option value="${state}">${nameOf(state)} (${length})</option>`,
  );
}

const ORDER = STANDINGS.map(([standing]) => standing);

function byOrder(one: Standing, other: Standing): number {
  return ORDER.indexOf(one) - ORDER.indexOf(other);
}
