/** The drawings of the page: bars of pods, and the curve of a rollout. Text stays outside, at its own size. */

import { counted } from "../../../go/counted.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import type { Batch } from "./batches.ts";
import { lengthOf, STANDINGS, timeOf } from "./content.ts";
import type { StandingCounts } from "./groups.ts";
import { type Html, html } from "./html.ts";
import type { Progress } from "./progress.ts";

/** A drawing only: the counts stand beside it as text. */
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

export interface Curve {
  readonly progress: Progress;
  readonly batches: readonly Batch[];
  /** number of all pods */
  readonly matched: number;
  /** number of pods to update */
  readonly target: number;
  /** maxUnavailable in pods */
  readonly maxUnavailable: number;
}

/** The number of pods with the current version over time, and below it the number of pods that were down. */
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
  /** the value at the top */
  readonly most: number;
  /** seconds, and the number of pods from then on */
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
