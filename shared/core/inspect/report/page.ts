/** Decides how a report reads as a page: the list of all SidecarSets, and what is said about each. */

import type { NextBatch, ReportContent, SetDetail } from "./content.ts";
import { document, type Frame, type Refresh } from "./document.ts";
import { bar, curve } from "./figures.ts";
import { type Html, html } from "./html.ts";
import { withCommands } from "./pod-page.ts";
import type { Standing } from "./pod-standing.ts";
import type { Reason } from "./reasons.ts";
import {
  batchesTable,
  countsText,
  eventsTable,
  type LinkToPod,
  MAX_PODS_SHOWN,
  mark,
  names,
  nodesTable,
  partly,
  podsTable,
  revisionsTable,
  setsTable,
  UNSEEN,
} from "./tables.ts";
import { countOf, STANDINGS, standingName } from "./words.ts";

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

// What the rows of a page can be filtered by. The page's script does it, and without a script there is no filter.

/** So few are seen at a glance. */
const FEW = 3;

/** undefined: there is too little to filter */
function filterOf({ sets = [], details }: ReportContent): Html | undefined {
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

/** Decides what is said about one SidecarSet, and in which order: where it stands, why, how it went, what is where. */
const REASON_PODS = 6;
/** Lists of more begin closed. */
const FEW_PODS = 30;

/** `linkToPod`: where a pod is explained; absent: nowhere */
function section(detail: SetDetail, id: string, linkToPod?: LinkToPod): Html {
  const { name, verdict, headline, counts, pods, facts } = detail;
  return html`<section class="set" id="${id}" aria-labelledby="${id}-name">
<div class="head"><h2 id="${id}-name">${name}</h2><p class="verdict ${verdict}">${verdict}</p></div>
<p class="lead">${headline}</p>
${bigBar(counts, pods.length)}
<div class="cards">
${detail.progress && card("Progress", curve({ ...detail, progress: detail.progress }))}
${detail.reasons.length > 0 && card("Why not more", html`<ul class="reasons">${detail.reasons.map(reasonItem)}</ul>`)}
${detail.next.length > 0 && card("Next", nextList(detail.next))}
${card(
  "Settings",
  html`<dl class="facts">${facts.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}
<div class="wide"><dt>Containers</dt>${detail.images.map((image) => html`<dd><code>${image}</code></dd>`)}</div></dl>`,
)}
${
  detail.batches.length > 0 &&
  card(
    "Batches",
    partly(detail.batches, "batch", (some, caption) => batchesTable(some, caption, detail.at)),
  )
}
${detail.nodes.length > 0 && card("Nodes", partly(detail.nodes, "node", nodesTable))}
${pods.length > 0 && card("Pods", podLists(detail, linkToPod), "wide pods")}
${detail.revisions.length > 0 && card("Revisions", revisionsTable(detail))}
${eventsCard(detail)}
</div>
</section>`;
}

function card(title: string, body: Html, width = ""): Html {
  return html`<section class="card ${width}"><h3>${title}</h3>${body}</section>`;
}

function bigBar(counts: SetDetail["counts"], total: number): Html {
  const shown = STANDINGS.filter(([standing]) => counts[standing]);
  return html`<div class="big">${bar(counts, total)}</div>
<dl class="legend">${shown.map(([standing, name]) => html`<div>${mark(standing)}<dt>${name}</dt><dd>${counts[standing]}</dd></div>`)}</dl>`;
}

function reasonItem({ reason, kind, title, text, next, pods }: Reason): Html {
  const item = ({ name, why }: Reason["pods"][number]) => html`<li><code>${name}</code>${why !== "" && ` ${why}`}</li>`;
  const rest = pods.slice(REASON_PODS);
  return html`<li class="why ${kind}"><strong>${title}</strong><p>${text} <small><code>${reason}</code></small></p>${next !== undefined && html`<p class="next">Next: ${withCommands(next)}</p>`}
${pods.length > 0 && html`<ul class="names">${pods.slice(0, REASON_PODS).map(item)}</ul>`}
${rest.length > 0 && html`<details class="more"><summary>and ${rest.length} more</summary><ul class="names">${rest.map(item)}</ul></details>`}</li>`;
}

function nextList(next: readonly NextBatch[]): Html {
  return html`<p class="muted">What the next passes do, once the pods before are ready.</p>
<ol class="reasons">${next.map(({ pods, isFlip, isDrain }) => {
    return html`<li><strong>${countOf(pods.length, "pod")}${isFlip && (pods.length === 1 ? " ends its hot upgrade" : " end their hot upgrades")}${isDrain && (pods.length === 1 ? " is drained first" : " are drained first")}</strong>${names(pods)}</li>`;
  })}</ol>`;
}

function podLists({ workloads, pods, at }: SetDetail, linkToPod: LinkToPod | undefined): Html {
  let room = MAX_PODS_SHOWN;
  const isOpen = pods.length <= FEW_PODS;
  const lists = workloads.map(({ name, total, counts, pods: all }) => {
    const shown = all.slice(0, room);
    room -= shown.length;
    const cut = shown.length < all.length ? `, of which ${shown.length} are listed here` : "";
    return html`<details${isOpen && html` open`}><summary>${name}: ${countOf(total, "pod")}, ${countsText(counts)}${bar(counts, total)}</summary>
${podsTable(shown, `Pods of ${name}${cut}`, { now: at, linkToPod })}</details>`;
  });
  return html`${lists}`;
}

function eventsCard(detail: SetDetail): Html {
  if (detail.events === undefined)
    return card("Events", html`<p class="muted">They cannot be read with these rights.</p>`);
  if (detail.events.length === 0) return card("Events", html`<p class="muted">None in the last while.</p>`);
  return card("Events", eventsTable(detail));
}
