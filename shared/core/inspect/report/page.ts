/** The page of a report: the list of all SidecarSets, and the section about each. */

import { secondsBetween } from "../../../go/seconds-between.ts";
import type { Step, Verdict } from "../explain/step.ts";
import type { Batch } from "./batches.ts";
import {
  bar,
  countOf,
  curve,
  type NextBatch,
  type ReportContent,
  roughLengthOf,
  type SetDetail,
  STANDINGS,
  standingName,
  timeOf,
} from "./content.ts";
import { document, type Frame, type Refresh } from "./document.ts";
import { type Html, html } from "./html.ts";
import type { PodGroup, PodStanding, Standing } from "./pod-standing.ts";
import type { Reason } from "./reasons.ts";
import type { SetRow } from "./rows.ts";

export interface PageOptions {
  /** address of a listed SidecarSet; absent: further down on the same page */
  readonly linkTo?: (name: string) => string;
  /** address of a pod's explanation; absent: no link */
  readonly linkToPod?: LinkToPod;
  /** addresses and names of the parent pages, outermost first; absent: none */
  readonly up?: Frame["up"];
  /** reload links; absent: the page cannot reload */
  readonly refresh?: Refresh;
}

/** Returns the whole document as text, without side effects. */
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

// The filters for the rows of a page. The page's script applies them; without a script there are none.

/** Lists with fewer rows have no filter. */
const FEW = 3;

/** The filter; undefined: there are too few rows. */
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

/** The section about one SidecarSet, in order: its state, the reason, its history, and its parts. */
const REASON_PODS = 6;
/** Lists with more pods begin closed. */
const FEW_PODS = 30;

/** `linkToPod`: address of a pod's explanation; absent: no link */
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

// The tables of the page: at most three columns, so that they fit on a phone.

/** Limit of pods on a page, because no browser opens more at once. */
const MAX_PODS_SHOWN = 20_000;
const NAMES_SHOWN = 3;
/** Longer tables begin with this many rows, and a click opens the rest. */
const ROWS_SHOWN = 10;

/** A table of the first rows, and a closed one of the rest. */
function partly<Row>(rows: readonly Row[], noun: string, table: (some: readonly Row[], caption: string) => Html): Html {
  const all = countOf(rows.length, noun);
  if (rows.length <= ROWS_SHOWN) return table(rows, all);
  const rest = rows.slice(ROWS_SHOWN);
  const other = `The other ${rest.length}`;
  return html`${table(rows.slice(0, ROWS_SHOWN), `${ROWS_SHOWN} of ${all}`)}
<details class="more"><summary>${other}</summary>${table(rest, other)}</details>`;
}

/** The first names, and a closed list of the others. */
function names(pods: readonly string[]): Html {
  const rest = pods.slice(NAMES_SHOWN);
  const first = pods.slice(0, NAMES_SHOWN).join(", ");
  if (rest.length === 0) return html`<small>${first}</small>`;
  return html`<small>${first}</small><details class="more"><summary>and ${rest.length} more</summary><small>${rest.join(", ")}</small></details>`;
}

function mark(standing: string): Html {
  return html`<span class="mark ${standing}" aria-hidden="true"></span>`;
}

/** The table of SidecarSets. `now`: time at which they were read */
function setsTable(sets: readonly SetRow[], linkTo: (name: string) => string, now: string): Html {
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

/** Allows a line break before each capital, for a narrow column. */
function breakable(word: string): Html {
  return html`${word.split(/(?<=[a-z])(?=[A-Z])/).map((part, index) => html`${index > 0 && html`<wbr>`}${part}`)}`;
}

/** Draws updated pods that are not ready as failing if the state says that they fail. */
function setBar({ updated, updatedReady, matched, verdict }: SetRow) {
  const unready = Math.max(0, updated - updatedReady);
  const isFailing = verdict === "Degraded" || verdict === "Halted" || verdict === "Blocked";
  return {
    updated: updated - unready,
    ...(isFailing ? { failing: unready } : { down: unready }),
    waiting: Math.max(0, matched - updated),
  };
}

const UNSEEN = "not seen yet";

/** Counts of SidecarSets by state, in the order of the list. */
function verdictCounts(sets: readonly SetRow[]): string {
  return [...Map.groupBy(sets, ({ verdict }) => verdict ?? UNSEEN)]
    .map(([verdict, group]) => `${group.length} ${verdict}`)
    .join(", ");
}

function batchesTable(batches: readonly Batch[], caption: string, now: string): Html {
  return html`<table><caption>${caption}, changed in place; newest first</caption>
<thead><tr><th scope="col">Time</th><th scope="col">Pods</th><th scope="col" class="num">Ready</th></tr></thead>
<tbody>${batches.map(({ at, pods, ready }) => {
    return html`<tr><th scope="row" class="time">${timeOf(at, now)}</th><td>${countOf(pods.length, "pod")}${names(pods)}</td><td class="num">${ready}</td></tr>`;
  })}</tbody></table>`;
}

function revisionsTable({ revisions, at: now }: SetDetail): Html {
  return html`<table><caption>Newest first; the current one is marked</caption>
<thead><tr><th scope="col">Revision</th><th scope="col">Images</th><th scope="col" class="num">Pods</th></tr></thead>
<tbody>${revisions.map(({ revision, name, createdAt, customVersion, images, pods, isCurrent }) => {
    return html`<tr${isCurrent && html` class="now" aria-current="true"`}><th scope="row">${revision}${isCurrent && " (current)"}${customVersion !== undefined && html` · ${customVersion}`}<small>${name}</small><small>${timeOf(createdAt, now)}</small></th>
<td><ul>${images.map((image) => html`<li><code>${image}</code></li>`)}</ul></td><td class="num">${pods}</td></tr>`;
  })}</tbody></table>`;
}

function eventsTable({ events = [], at: now }: SetDetail): Html {
  return html`<table><caption>Newest first</caption>
<thead><tr><th scope="col">Time</th><th scope="col">Event</th></tr></thead>
<tbody>${events.map(({ at, reason, message, about, count, isWarning }) => {
    return html`<tr><th scope="row" class="time">${timeOf(at, now)}</th><td>${isWarning && "Warning: "}${reason}${count > 1 && `, ${count} times`}<small>${about}: ${message}</small></td></tr>`;
  })}</tbody></table>`;
}

function nodesTable(nodes: readonly PodGroup[], caption: string): Html {
  return html`<table class="bars"><caption>${caption}</caption>
<thead><tr><th scope="col">Node</th><th scope="col">Pods by state</th><th scope="col" class="num">Pods</th></tr></thead>
<tbody>${nodes.map(({ name, counts, total }) => {
    return html`<tr><th scope="row">${name || "no node yet"}</th><td>${bar(counts, total)}<small>${countsText(counts)}</small></td><td class="num">${total}</td></tr>`;
  })}</tbody></table>`;
}

function countsText(counts: PodGroup["counts"]): string {
  return STANDINGS.filter(([standing]) => counts[standing])
    .map(([standing, name]) => `${counts[standing]} ${name.toLowerCase()}`)
    .join(", ");
}

type LinkToPod = (pod: { readonly namespace: string; readonly name: string }) => string;

interface PodsTable {
  readonly now: string;
  readonly linkToPod: LinkToPod | undefined;
}

function podsTable(pods: readonly PodStanding[], caption: string, { now, linkToPod }: PodsTable): Html {
  return html`<table><caption>${caption}</caption>
<thead><tr><th scope="col">Pod</th><th scope="col">State</th><th scope="col">Since</th></tr></thead>
<tbody>${pods.map((pod) => {
    const { name, node, standing, why, since } = pod;
    const title = linkToPod === undefined ? name : html`<a href="${linkToPod(pod)}">${name}</a>`;
    return html`<tr><th scope="row">${title}<small>${node || "no node yet"}</small></th><td>${mark(standing)}${standingName(standing)}${why !== "" && html`<small>${why}</small>`}</td><td>${timeOf(since, now)}</td></tr>`;
  })}</tbody></table>`;
}

// The page that explains one pod: every rule, in order.

export interface PodExplanation {
  readonly sidecarSet: string;
  readonly namespace: string;
  readonly name: string;
  readonly steps: readonly Step[];
}

/** The mark, its text for screen readers, and its colour class. */
const MARKS: Readonly<Record<Verdict, readonly [string, string, string]>> = {
  ok: ["✓", "nothing in the way", "fine"],
  note: ["·", "good to know", "held"],
  wait: ["…", "goes on by itself", "wait"],
  stop: ["✗", "needs you to do something", "trouble"],
};

/** Returns the whole document as text, without side effects. */
export function renderPodPage(explanation: PodExplanation, frame: Omit<Frame, "title">): string {
  const { sidecarSet, namespace, name, steps } = explanation;
  return document(
    { ...frame, title: `${name} · ${sidecarSet}` },
    html`<section class="set" aria-labelledby="pod"><h2 id="pod">${name}</h2>
<p class="lead">Pod in the namespace ${namespace}, and the SidecarSet ${sidecarSet}.</p>
<div class="cards"><section class="card wide"><h3>Why it is as it is</h3><ul class="reasons">${steps.map(
      ({ verdict, reason, message, hint }) => {
        const [mark, said, kind] = MARKS[verdict];
        return html`<li class="why ${kind}"><strong><span role="img" aria-label="${said}">${mark}</span> ${reason}</strong><p>${message}.</p>${hint !== undefined && html`<p>To do: ${withCommands(hint)}</p>`}</li>`;
      },
    )}</ul></section></div></section>`,
  );
}

// Finds the commands in an advice, so that readers can copy exactly these words.

/**
 * Matches a quotation, which is never a command, or a command with its separator. Punctuation ends a command, and so
 * does a word that is never part of one.
 */
const QUOTED_OR_COMMAND =
  /"(?:[^"\\]|\\.)*"|\b((?:kubectl|sidecarset) (?=[a-z-])(?:(?![,;] | [(#]| (?:or|says|shows|tells|makes|names|when) ).)+)(?:[,;] | # )?/g;

/**
 * The advice as a sentence, with each kubectl or sidecarset command in its own box. @param advice a text of this code
 * only, because readers can copy anything in it that looks like a command
 */
export function withCommands(advice: string): Html {
  const parts: Html[] = [];
  let from = 0;
  for (const { 0: all, 1: command, index } of advice.matchAll(QUOTED_OR_COMMAND)) {
    if (command === undefined) continue;
    parts.push(html`${advice.slice(from, index)}<span class="cmd"><code>${command}</code></span>`);
    from = index + all.length;
  }
  const rest = advice.slice(from);
  return html`${parts}${rest}${rest !== "" && "."}`;
}
