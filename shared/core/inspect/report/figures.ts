/** Decides what the page draws: bars of where pods stand, and the curve of a rollout. Text stays outside, at its own size. */

import { counted } from "../../../go/counted.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import type { StandingCounts } from "./groups.ts";
import { type Html, html } from "./html.ts";
import type { Batch, Progress } from "./progress.ts";
import { lengthOf, STANDINGS, timeOf } from "./words.ts";

/** For the eye; the counts stand beside it as text. */
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
  /** pods in all */
  readonly matched: number;
  /** of these, to be updated */
  readonly target: number;
}

/** Pods that have the current version, over time. */
export function curve({ progress, batches, matched, target }: Curve): Html {
  const { points, seconds, from, to } = progress;
  const x = (at: number) => round(seconds === 0 ? WIDTH : (at / seconds) * WIDTH);
  const y = (pods: number) => round(HEIGHT - (matched === 0 ? 0 : Math.min(1, pods / matched) * HEIGHT));
  const steps = points.slice(1).map(({ atSeconds, updated }) => `H${x(atSeconds)}V${y(updated)}`);
  const line = `M0 ${y(points[0]?.updated ?? 0)}${steps.join("")}H${WIDTH}`;
  const ticks = batches.map(({ at }) => `M${x(secondsBetween(from, at) ?? 0)} ${HEIGHT}v-10`).join("");
  const last = points.at(-1)?.updated ?? 0;
  return html`<figure class="chart">
<figcaption>${last} of ${counted(matched, "pod has", "pods have")} the current version, after ${lengthOf(seconds)}.${target < matched && html` The dashed line is at ${target}, where the partition ends it.`}</figcaption>
<div class="plot">
<p class="y" aria-hidden="true"><span>${matched}</span><span>0</span></p>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="From ${from} to ${to} the pods with the current version rose from ${points[0]?.updated ?? 0} to ${last} of ${matched}.">
<path class="area" d="${line}V${HEIGHT}H0Z"/><path class="line" d="${line}"/>
${target < matched && html`<path class="target" d="M0 ${y(target)}H${WIDTH}"/>`}<path class="ticks" d="${ticks}"/>
</svg>
<p class="x" aria-hidden="true"><span>${timeOf(from, to)}</span><span>${timeOf(to, to)}</span></p>
</div>
</figure>`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
