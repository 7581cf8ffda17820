/** Decides whether a rollout stops because too many of the pods that it took down fail, where somebody has said how many those are. */
import { HALT_ON_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import type { Testimony, Witness } from "./witnesses.ts";

/**
 * Why it stops, in one sentence; undefined: it goes on. It goes on again when fewer fail, when the SidecarSet brings a
 * release that none of them has, and when the annotation goes. Where pods of
 * several namespaces match, no namespace counts for more than half of what stops it: the right to create pods in one of
 * them is no say over the others.
 */
export function haltOf(sidecarSet: SidecarSet, { witnesses, upgraded, namespaces }: Testimony): string | undefined {
  const { haltOn: limit } = steeringOf(sidecarSet);
  if (limit === undefined) return undefined;
  const allowed = limit.isPercent ? (limit.amount * upgraded) / 100 : limit.amount;
  const needed = Math.max(Math.floor(allowed) + 1, namespaces > 1 ? 2 : 1);
  const share = namespaces > 1 ? Math.ceil(needed / 2) : needed;
  const count =
    limit.withinSeconds === undefined ? counted(witnesses, share) : mostWithin(witnesses, limit.withinSeconds, share);
  return count >= needed
    ? `${witnesses.length} of ${upgraded} updated pods fail, and ${HALT_ON_ANNOTATION} is ${limit.text}: fix the image, or go back`
    : undefined;
}

const EPOCH = "1970-01-01T00:00:00Z";

/** No namespace counts more often than `share`. */
function counted(witnesses: readonly Witness[], share: number): number {
  const byNamespace = Map.groupBy(witnesses, ({ namespace }) => namespace);
  return [...byNamespace.values()].reduce((sum, { length }) => sum + Math.min(length, share), 0);
}

/** The most that were updated within that time of each other, each namespace counted `share` times at most. */
function mostWithin(witnesses: readonly Witness[], seconds: number, share: number): number {
  const timed = witnesses
    .map(({ namespace, updatedAt }) => ({ namespace, time: secondsBetween(EPOCH, updatedAt) ?? 0 }))
    .sort((a, b) => a.time - b.time);
  const inSpan = new Map<string, number>();
  let [most, sum, first] = [0, 0, 0];
  const move = (namespace: string, by: 1 | -1) => {
    const before = inSpan.get(namespace) ?? 0;
    inSpan.set(namespace, before + by);
    sum += Math.min(before + by, share) - Math.min(before, share);
  };
  for (const { namespace, time } of timed) {
    move(namespace, 1);
    for (let oldest = timed[first]; oldest && time - oldest.time > seconds; oldest = timed[++first])
      move(oldest.namespace, -1);
    most = Math.max(most, sum);
  }
  return most;
}
