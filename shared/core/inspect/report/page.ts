/** Decides how a report reads as a page: the list of all SidecarSets, and what is said about each. */
import type { ReportContent, SetDetail } from "./content.ts";
import { document, type Frame, type Refresh } from "./document.ts";
import { filterOf } from "./filter.ts";
import { type Html, html } from "./html.ts";
import { reasonItem, section } from "./section.ts";
import { type LinkToPod, setsTable } from "./tables.ts";

export interface PageOptions {
  /** where the SidecarSets of the list are shown; absent: further down on the same page */
  readonly linkTo?: (name: string) => string;
  /** where a pod of the SidecarSet is explained; absent: nowhere */
  readonly linkToPod?: LinkToPod;
  /** address and name of the pages above, outermost first; absent: there are none */
  readonly up?: Frame["up"];
  /** absent: it stays as it is */
  readonly refresh?: Refresh;
}

/** Pure. The whole document, as text. */
export function renderPage(content: ReportContent, options: PageOptions = {}): string {
  const { at, cluster, idle, sets, details } = content;
  const ids = new Map(details.map(({ name }, index) => [name, `set-${index + 1}`]));
  const linkTo = options.linkTo ?? ((name: string) => `#${ids.get(name) ?? "main"}`);
  return document(
    { title: titleOf(details), at, cluster, refresh: options.refresh, up: options.up ?? [], filter: filterOf(content) },
    html`${sets !== undefined && (sets.length !== 1 || details.length === 0) && list({ idle, sets, at }, linkTo)}
${details.map((detail) => section(detail, ids.get(detail.name) ?? "", options.linkToPod))}`,
  );
}

function list(content: Required<Pick<ReportContent, "idle" | "sets" | "at">>, linkTo: (name: string) => string): Html {
  const { idle, sets, at } = content;
  return html`${idle && html`<div class="card"><ul class="reasons">${reasonItem(idle)}</ul></div>`}
<div class="card">${sets.length === 0 ? html`<p>The cluster has no SidecarSets.</p>` : setsTable(sets, linkTo, at)}</div>`;
}

function titleOf(details: readonly SetDetail[]): string {
  const [only] = details;
  return only !== undefined && details.length === 1 ? `${only.name}: ${only.verdict} · SidecarSet` : "SidecarSets";
}
