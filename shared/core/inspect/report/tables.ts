/** Decides how the tables of the page read: three columns at most, so that they fit on a phone. */
import { secondsBetween } from "../../../go/seconds-between.ts";
import type { Batch } from "./batches.ts";
import type { SetDetail } from "./content.ts";
import { bar } from "./figures.ts";
import type { PodGroup } from "./groups.ts";
import { type Html, html } from "./html.ts";
import type { PodStanding } from "./pod-standing.ts";
import type { SetRow } from "./set-row.ts";
import { countOf, roughLengthOf, STANDINGS, standingName, timeOf } from "./words.ts";

/** More would make a page that no browser opens in a moment. */
export const MAX_PODS_SHOWN = 20_000;
const NAMES_SHOWN = 3;
/** Longer tables begin with so many rows, and the others are to be opened. */
const ROWS_SHOWN = 10;

/** A table of the first rows, and one of the others behind it. */
export function partly<Row>(
  rows: readonly Row[],
  noun: string,
  table: (some: readonly Row[], caption: string) => Html,
): Html {
  const all = countOf(rows.length, noun);
  if (rows.length <= ROWS_SHOWN) return table(rows, all);
  const rest = rows.slice(ROWS_SHOWN);
  const other = `The other ${rest.length}`;
  return html`${table(rows.slice(0, ROWS_SHOWN), `${ROWS_SHOWN} of ${all}`)}
<details class="more"><summary>${other}</summary>${table(rest, other)}</details>`;
}

/** The first few names, and the others to be opened. */
export function names(pods: readonly string[]): Html {
  const rest = pods.slice(NAMES_SHOWN);
  const first = pods.slice(0, NAMES_SHOWN).join(", ");
  if (rest.length === 0) return html`<small>${first}</small>`;
  return html`<small>${first}</small><details class="more"><summary>and ${rest.length} more</summary><small>${rest.join(", ")}</small></details>`;
}

export function mark(standing: string): Html {
  return html`<span class="mark ${standing}" aria-hidden="true"></span>`;
}

/** `now`: when they were read */
export function setsTable(sets: readonly SetRow[], linkTo: (name: string) => string, now: string): Html {
  return html`<table class="sets"><caption>${countOf(sets.length, "SidecarSet")}: ${verdictCounts(sets)}</caption>
<thead><tr><th scope="col">Name</th><th scope="col">State</th><th scope="col">Updated</th></tr></thead>
<tbody>${sets.map((row) => {
    const { name, images, matched, updated, ready, verdict, since, reason } = row;
    const age = since === undefined ? undefined : secondsBetween(since, now);
    return html`<tr><th scope="row"><a href="${linkTo(name)}">${name}</a><small class="images">${images.join(", ")}</small></th>
<td><strong class="state ${verdict ?? "unseen"}">${verdict === undefined ? UNSEEN : breakable(verdict)}</strong>${age !== undefined && html` <small class="since">for ${roughLengthOf(Math.max(0, age))}</small>`}<small class="clause">${reason}</small></td>
<td>${updated} of ${matched}${bar(setBar(row), matched)}<small>${ready} ready</small></td></tr>`;
  })}</tbody></table>`;
}

/** May break before each capital, where the column is narrow. */
function breakable(word: string): Html {
  return html`${word.split(/(?<=[a-z])(?=[A-Z])/).map((part, index) => html`${index > 0 && html`<wbr>`}${part}`)}`;
}

/** Updated pods that are not ready are drawn as failing where the state says that they fail. */
function setBar({ updated, updatedReady, matched, verdict }: SetRow) {
  const unready = Math.max(0, updated - updatedReady);
  const isFailing = verdict === "Degraded" || verdict === "Halted" || verdict === "Blocked";
  return {
    updated: updated - unready,
    ...(isFailing ? { failing: unready } : { down: unready }),
    waiting: Math.max(0, matched - updated),
  };
}

export const UNSEEN = "not seen yet";

/** In the order of the list. */
function verdictCounts(sets: readonly SetRow[]): string {
  return [...Map.groupBy(sets, ({ verdict }) => verdict ?? UNSEEN)]
    .map(([verdict, group]) => `${group.length} ${verdict}`)
    .join(", ");
}

export function batchesTable(batches: readonly Batch[], caption: string, now: string): Html {
  return html`<table><caption>${caption}, changed in place; newest first</caption>
<thead><tr><th scope="col">Time</th><th scope="col">Pods</th><th scope="col" class="num">Ready</th></tr></thead>
<tbody>${batches.map(({ at, pods, ready }) => {
    return html`<tr><th scope="row" class="time">${timeOf(at, now)}</th><td>${countOf(pods.length, "pod")}${names(pods)}</td><td class="num">${ready}</td></tr>`;
  })}</tbody></table>`;
}

export function revisionsTable({ revisions, at: now }: SetDetail): Html {
  return html`<table><caption>Newest first; the current one is marked</caption>
<thead><tr><th scope="col">Revision</th><th scope="col">Images</th><th scope="col" class="num">Pods</th></tr></thead>
<tbody>${revisions.map(({ revision, name, createdAt, customVersion, images, pods, isCurrent }) => {
    return html`<tr${isCurrent && html` class="now" aria-current="true"`}><th scope="row">${revision}${isCurrent && " (current)"}${customVersion !== undefined && html` · ${customVersion}`}<small>${name}</small><small>${timeOf(createdAt, now)}</small></th>
<td><ul>${images.map((image) => html`<li><code>${image}</code></li>`)}</ul></td><td class="num">${pods}</td></tr>`;
  })}</tbody></table>`;
}

export function eventsTable({ events = [], at: now }: SetDetail): Html {
  return html`<table><caption>Newest first</caption>
<thead><tr><th scope="col">Time</th><th scope="col">Event</th></tr></thead>
<tbody>${events.map(({ at, reason, message, about, count, isWarning }) => {
    return html`<tr><th scope="row" class="time">${timeOf(at, now)}</th><td>${isWarning && "Warning: "}${reason}${count > 1 && `, ${count} times`}<small>${about}: ${message}</small></td></tr>`;
  })}</tbody></table>`;
}

export function nodesTable(nodes: readonly PodGroup[], caption: string): Html {
  return html`<table class="bars"><caption>${caption}</caption>
<thead><tr><th scope="col">Node</th><th scope="col">Pods by state</th><th scope="col" class="num">Pods</th></tr></thead>
<tbody>${nodes.map(({ name, counts, total }) => {
    return html`<tr><th scope="row">${name || "no node yet"}</th><td>${bar(counts, total)}<small>${countsText(counts)}</small></td><td class="num">${total}</td></tr>`;
  })}</tbody></table>`;
}

export function countsText(counts: PodGroup["counts"]): string {
  return STANDINGS.filter(([standing]) => counts[standing])
    .map(([standing, name]) => `${counts[standing]} ${name.toLowerCase()}`)
    .join(", ");
}

export type LinkToPod = (pod: { readonly namespace: string; readonly name: string }) => string;

interface PodsTable {
  readonly now: string;
  readonly linkToPod: LinkToPod | undefined;
}

export function podsTable(pods: readonly PodStanding[], caption: string, { now, linkToPod }: PodsTable): Html {
  return html`<table><caption>${caption}</caption>
<thead><tr><th scope="col">Pod</th><th scope="col">State</th><th scope="col">Since</th></tr></thead>
<tbody>${pods.map((pod) => {
    const { name, node, standing, why, since } = pod;
    const title = linkToPod === undefined ? name : html`<a href="${linkToPod(pod)}">${name}</a>`;
    return html`<tr><th scope="row">${title}<small>${node || "no node yet"}</small></th><td>${mark(standing)}${standingName(standing)}${why !== "" && html`<small>${why}</small>`}</td><td>${timeOf(since, now)}</td></tr>`;
  })}</tbody></table>`;
}
