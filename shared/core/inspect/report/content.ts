/** The content of a report: everything that the page shows, without its form. */

import { counted } from "../../../go/counted.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import type { RolloutVerdict } from "../../rollout/conditions/verdict.ts";
import type { Batch, Progress } from "./batches.ts";
import { type Html, html } from "./html.ts";
import type { PodGroup, PodStanding, Standing, StandingCounts } from "./pod-standing.ts";
import type { Reason } from "./reasons.ts";
import type { EventLine, RevisionRow, SetRow } from "./rows.ts";

/** One of the next batches. */
export interface NextBatch {
  /** names as namespace/name, in the order of the rollout */
  readonly pods: readonly string[];
  readonly isFlip: boolean;
  readonly isDrain: boolean;
}

/** One SidecarSet with its pods. */
export interface SetDetail {
  readonly name: string;
  /** time at which the pods were read, RFC3339 */
  readonly at: string;
  readonly verdict: RolloutVerdict;
  /** the state in one sentence */
  readonly headline: string;
  readonly images: readonly string[];
  /** pairs of a name and a value, such as ["maxUnavailable", "10% (2 pods)"] */
  readonly facts: readonly (readonly [string, string])[];
  readonly matched: number;
  readonly updated: number;
  readonly ready: number;
  /** number of pods to update, without those that the partition keeps */
  readonly target: number;
  /** number of pods that maxUnavailable allows */
  readonly maxUnavailable: number;
  readonly counts: StandingCounts;
  readonly reasons: readonly Reason[];
  readonly progress: Progress | undefined;
  readonly batches: readonly Batch[];
  readonly next: readonly NextBatch[];
  readonly nodes: readonly PodGroup[];
  /** workloads; workloads with pods that need a person come first */
  readonly workloads: readonly PodGroup[];
  readonly pods: readonly PodStanding[];
  readonly revisions: readonly RevisionRow[];
  /** Events; undefined: they cannot be read */
  readonly events: readonly EventLine[] | undefined;
}

export interface ReportContent {
  /** time at which the cluster was read, RFC3339 */
  readonly at: string;
  /** address of the API server, or name of the context; "" if unknown */
  readonly cluster: string;
  /** the reason why no pass runs; undefined: a pass runs, or that is unknown */
  readonly idle: Reason | undefined;
  /** rows of the list; absent: the list was not requested */
  readonly sets?: readonly SetRow[];
  /** details of SidecarSets in `sets`: all, one or none */
  readonly details: readonly SetDetail[];
}

// The words of the page for states, times, durations and counts.

/** The states of pods, in display order. */
export const STANDINGS: readonly (readonly [Standing, string])[] = [
  ["updated", "Updated"],
  ["failing", "Failing"],
  ["down", "Not ready"],
  ["changing", "Changing"],
  ["waiting", "Waiting"],
  ["notSelected", "Not selected"],
  ["notUpgradable", "Needs a new pod"],
  ["without", "Without sidecars"],
];

export function standingName(standing: Standing): string {
  return STANDINGS.find(([key]) => key === standing)?.[1] ?? standing;
}

/** A time as text: 2026-01-02 03:04:05, and 03:04:05 for the same day. The page says once that times are UTC. */
export function timeOf(at: string | undefined, now = ""): Html {
  if (at === undefined || at === "") return html`–`;
  const [day = "", time = ""] = at.replace(/(\.\d+)?Z$/, "").split("T");
  return html`<time datetime="${at}">${now.startsWith(`${day}T`) ? time : html`${day}<wbr> ${time}`}</time>`;
}

/** A duration as text: 200 gives "3 min 20 s". */
export function lengthOf(seconds: number): string {
  const units: readonly (readonly [string, number])[] = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
    ["s", 1],
  ];
  const first = units.findIndex(([, size]) => seconds >= size);
  const [unit, size] = units[first] ?? ["s", 1];
  const [nextUnit, nextSize] = units[first + 1] ?? ["", 0];
  const rest = nextSize === 0 ? 0 : Math.floor((seconds % size) / nextSize);
  return `${Math.floor(seconds / size)} ${unit}${rest > 0 ? ` ${rest} ${nextUnit}` : ""}`;
}

/** A duration in its largest unit: 200 gives "3 min". */
export function roughLengthOf(seconds: number): string {
  return lengthOf(seconds).split(" ").slice(0, 2).join(" ");
}

export function countOf(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : noun.endsWith("ch") ? "es" : "s"}`;
}

// The drawings of the page: bars of pods, and the curve of a rollout. Text is not part of a drawing.

/** A bar without text; the page prints the counts beside it. */
export function bar(counts: StandingCounts, total: number): Html {
  let x = 0;
  const parts = STANDINGS.map(([standing]) => {
    const width = total === 0 ? 0 : ((counts[standing] ?? 0) / total) * 100;
    const from = x;
    x += width;
    return width > 0 && html`<rect class="${standing}" x="${round(from)}" width="${round(width)}" height="1"/>`;
  });
  return html`<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true" focusable="false">${parts}</svg>`;
}

const WIDTH = 1000;
const HEIGHT = 300;

interface Curve {
  readonly progress: Progress;
  readonly batches: readonly Batch[];
  /** number of all pods */
  readonly matched: number;
  /** number of pods to update */
  readonly target: number;
  /** number of pods that maxUnavailable allows */
  readonly maxUnavailable: number;
}

/** The number of pods with the current version over time. Below it is the number of pods that were down. */
export function curve(what: Curve): Html {
  const { progress, batches, matched, target } = what;
  const { points, seconds, from, to, isOver } = progress;
  const first = points[0]?.updated ?? 0;
  const last = points.at(-1)?.updated ?? 0;
  const steps = points.map(({ atSeconds, updated }) => [atSeconds, updated] as const);
  const plot = { progress, height: HEIGHT, most: matched, steps };
  const ticks = batches
    .map(({ at }) => secondsBetween(from, at) ?? -1)
    .filter((at) => at >= 0)
    .map((at) => `M${xOf(progress, at)} ${HEIGHT}v-10`);
  const time = isOver ? `; it took ${lengthOf(seconds)}` : `, after ${lengthOf(seconds)}`;
  return html`<figure class="chart">
<figcaption>${last} of ${counted(matched, "pod has", "pods have")} the current version${time}.${target < matched && html` The dashed line is at ${target}, where the partition ends it.`}</figcaption>
<div class="plot">
<p class="y" aria-hidden="true"><span>${matched}</span><span>0</span></p>
${drawing(plot, `From ${from} to ${to} the pods with the current version rose from ${first} to ${last} of ${matched}.`, html`${target < matched && limit(plot, target)}<path class="ticks" d="${ticks.join("")}"/>`)}
<p class="x" aria-hidden="true"><span>${timeOf(from, to)}</span><span>${timeOf(to, to)}</span></p>
</div>
</figure>${downCurve(what)}`;
}

const DOWN_HEIGHT = 90;

function downCurve({ progress, maxUnavailable }: Curve): Html {
  const { down, from, to } = progress;
  const peak = Math.max(0, ...down.map((point) => point.down));
  const most = Math.max(peak, maxUnavailable, 1);
  const said =
    peak === 0
      ? "No pod went down after the change"
      : `At most ${counted(peak, "pod was", "pods were")} down at once after the change`;
  const steps = [[0, 0] as const, ...down.map((point) => [point.atSeconds, point.down] as const)];
  const plot = { progress, height: DOWN_HEIGHT, most, steps };
  return html`<figure class="chart unavailable">
<figcaption>${said}; maxUnavailable allows ${maxUnavailable}.</figcaption>
<div class="plot">
<p class="y" aria-hidden="true"><span>${most}</span><span>0</span></p>
${drawing(plot, `${said}, from ${from} to ${to}; maxUnavailable allows ${maxUnavailable}.`, html`${maxUnavailable > 0 && limit(plot, maxUnavailable)}`)}
</div>
</figure>`;
}

interface Plot {
  readonly progress: Progress;
  readonly height: number;
  /** the highest value of the axis */
  readonly most: number;
  /** pairs of a time in seconds and the number of pods from that time on */
  readonly steps: readonly (readonly [number, number])[];
}

function drawing({ progress, height, most, steps }: Plot, label: string, more: Html): Html {
  const y = (pods: number) => yOf({ height, most }, pods);
  const [[, first] = [0, 0], ...rest] = steps;
  const line = `M0 ${y(first)}${rest.map(([at, pods]) => `H${xOf(progress, at)}V${y(pods)}`).join("")}H${WIDTH}`;
  return html`<svg viewBox="0 0 ${WIDTH} ${height}" preserveAspectRatio="none" role="img" aria-label="${label}">
<path class="area" d="${line}V${height}H0Z"/><path class="line" d="${line}"/>
${more}
</svg>`;
}

function limit({ height, most }: Pick<Plot, "height" | "most">, pods: number): Html {
  return html`<path class="target" d="M0 ${yOf({ height, most }, pods)}H${WIDTH}"/>`;
}

function xOf({ seconds }: Progress, at: number): number {
  return round(seconds === 0 ? WIDTH : (at / seconds) * WIDTH);
}

function yOf({ height, most }: Pick<Plot, "height" | "most">, pods: number): number {
  return round(height - (most === 0 ? 0 : Math.min(1, pods / most) * height));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
