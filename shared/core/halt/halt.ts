/** Decides whether a rollout stops because too many of the pods that it updated fail, where somebody has said how many those are. */
import { HALT_ON_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { secondsBetween } from "../lib/seconds-between.ts";
import { shownText } from "../lib/shown-text.ts";
import type { FailingPod } from "../pod/failing-pods.ts";

/** `3`, `10%`, `10% within 5m` */
const FORM = /^(\d{1,6})(%?)(?: within (\d{1,5})(s|m|h))?$/;
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

interface Limit {
  readonly amount: number;
  /** of the updated pods */
  readonly isPercent: boolean;
  /** between the updates of those that count together; absent: all count */
  readonly withinSeconds?: number;
}

/**
 * Why it stops, in one sentence; undefined: it goes on. It goes on again when fewer fail, when the SidecarSet brings a
 * release that none of them has, and when the annotation goes. What cannot be read stops it as well.
 */
export function haltOf(
  { metadata }: SidecarSet,
  { failing, updated }: { readonly failing: readonly FailingPod[]; readonly updated: number },
): string | undefined {
  const text = metadata?.annotations?.[HALT_ON_ANNOTATION];
  if (text === undefined) return undefined;
  const limit = parseLimit(text);
  if (limit === undefined) return problemWith(text);
  const allowed = limit.isPercent ? (limit.amount * updated) / 100 : limit.amount;
  const count = limit.withinSeconds === undefined ? failing.length : mostWithin(failing, limit.withinSeconds);
  return count > allowed
    ? `${count} of ${updated} updated pods fail, and ${HALT_ON_ANNOTATION} is ${text}: mend the image, or go back`
    : undefined;
}

/** One sentence; undefined: the annotation is not there, or can be read. */
export function haltProblem({ metadata }: SidecarSet): string | undefined {
  const text = metadata?.annotations?.[HALT_ON_ANNOTATION];
  return text === undefined || parseLimit(text) !== undefined ? undefined : problemWith(text);
}

function problemWith(text: string): string {
  return `the annotation ${HALT_ON_ANNOTATION} says ${shownText(text)}: write for example 3, 10% or "10% within 5m"`;
}

function parseLimit(text: string): Limit | undefined {
  const [, amount, percent, span, unit = ""] = FORM.exec(text.trim()) ?? [];
  if (amount === undefined) return undefined;
  const limit = { amount: Number(amount), isPercent: percent === "%" };
  return span === undefined ? limit : { ...limit, withinSeconds: Number(span) * (SECONDS[unit] ?? 1) };
}

const EPOCH = "1970-01-01T00:00:00Z";

/** The most that were updated within that time of each other. Those of unknown time count as updated with any other. */
function mostWithin(failing: readonly FailingPod[], seconds: number): number {
  const times = failing.flatMap(({ updatedAt = "" }) => secondsBetween(EPOCH, updatedAt) ?? []).sort((a, b) => a - b);
  let [most, first] = [0, 0];
  for (const [last, time] of times.entries()) {
    while (time - (times[first] ?? time) > seconds) first++;
    most = Math.max(most, last - first + 1);
  }
  return most + failing.length - times.length;
}
