/** Decides how a rollout went so far, from the times that are recorded in the pods. */
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import type { PodStanding } from "./pod-standing.ts";

/** So many pods had the current version from that time on. */
interface ProgressPoint {
  /** seconds since the beginning of the progress */
  readonly atSeconds: number;
  readonly updated: number;
}

export interface Progress {
  /** RFC3339 */
  readonly from: string;
  /** RFC3339 */
  readonly to: string;
  readonly seconds: number;
  /** rising; the first is at 0 */
  readonly points: readonly ProgressPoint[];
}

/** Pods that were changed in place by one decision. */
export interface Batch {
  /** RFC3339 */
  readonly at: string;
  /** namespace/name, sorted */
  readonly pods: readonly string[];
  /** of these, ready with it now */
  readonly ready: number;
}

/** A chart is no finer than this. */
const MAX_POINTS = 500;

/**
 * Only pods that are there now are counted. Undefined while none has the current version, or no time is recorded.
 * @param updated the pods that have the current version
 */
export function progressOf(
  updated: readonly PodStanding[],
  releasedAt: string | undefined,
  now: string,
): Progress | undefined {
  const times = updated.flatMap(({ since }) => since ?? []).sort(compareUtf8);
  const [first] = times;
  if (first === undefined) return undefined;
  const isReleasedBefore = releasedAt !== undefined && (secondsBetween(releasedAt, first) ?? -1) >= 0;
  const from = isReleasedBefore ? releasedAt : first;
  const at = (time: string) => secondsBetween(from, time) ?? 0;
  const seconds = Math.max(at(now), at(times.at(-1) ?? first));
  const points = [
    { atSeconds: 0, updated: updated.length - times.length },
    ...risesOf(times, updated.length - times.length, at),
  ];
  return { from, to: now, seconds, points: thinned(points) };
}

function risesOf(times: readonly string[], before: number, at: (time: string) => number): readonly ProgressPoint[] {
  return times.flatMap((time, index) =>
    times[index + 1] === time ? [] : [{ atSeconds: at(time), updated: before + index + 1 }],
  );
}

/** The first and the last stay. */
function thinned(points: readonly ProgressPoint[]): readonly ProgressPoint[] {
  if (points.length <= MAX_POINTS) return points;
  const step = (points.length - 1) / (MAX_POINTS - 1);
  return Array.from({ length: MAX_POINTS }, (_, index) => points[Math.round(index * step)]).filter(
    (point) => point !== undefined,
  );
}

/** Newest first. A decision has one time for all its pods, so pods with the same time are one batch. */
export function batchesOf(updated: readonly PodStanding[]): readonly Batch[] {
  const byTime = Map.groupBy(
    updated.filter(({ isInPlace, since }) => isInPlace && since !== undefined),
    ({ since }) => since ?? "",
  );
  return [...byTime]
    .sort(([a], [b]) => compareUtf8(b, a))
    .map(([at, pods]) => ({
      at,
      pods: pods.map(({ namespace, name }) => `${namespace}/${name}`).sort(compareUtf8),
      ready: pods.filter(({ isReady }) => isReady).length,
    }));
}
