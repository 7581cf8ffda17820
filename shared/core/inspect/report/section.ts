/** Decides what is said about one SidecarSet, and in which order: where it stands, why, how it went, what is where. */

import { withCommands } from "./commands.ts";
import type { NextBatch, SetDetail } from "./content.ts";
import { bar, curve } from "./figures.ts";
import { type Html, html } from "./html.ts";
import type { Reason } from "./reason.ts";
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
} from "./tables.ts";
import { countOf, STANDINGS } from "./words.ts";

const REASON_PODS = 6;
/** Lists of more begin closed. */
const FEW_PODS = 30;

/** `linkToPod`: where a pod is explained; absent: nowhere */
export function section(detail: SetDetail, id: string, linkToPod?: LinkToPod): Html {
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

export function reasonItem({ reason, kind, title, text, next, pods }: Reason): Html {
  const item = ({ name, why }: Reason["pods"][number]) => html`<li><code>${name}</code>${why !== "" && ` ${why}`}</li>`;
  const rest = pods.slice(REASON_PODS);
  return html`<li class="why ${kind}"><strong>${title}</strong><p>${text} <small><code>${reason}</code></small></p>${next !== undefined && html`<p class="next">Next: ${withCommands(next)}</p>`}
${pods.length > 0 && html`<ul class="names">${pods.slice(0, REASON_PODS).map(item)}</ul>`}
${rest.length > 0 && html`<details class="more"><summary>and ${rest.length} more</summary><ul class="names">${rest.map(item)}</ul></details>`}</li>`;
}

function nextList(next: readonly NextBatch[]): Html {
  return html`<p class="muted">What the next passes do, once the pods before are ready.</p>
<ol class="reasons">${next.map(({ pods, isFlip }) => {
    return html`<li><strong>${countOf(pods.length, "pod")}${isFlip && (pods.length === 1 ? " ends its hot upgrade" : " end their hot upgrades")}</strong>${names(pods)}</li>`;
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
