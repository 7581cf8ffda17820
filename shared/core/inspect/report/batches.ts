/** Finds the pods that were changed together, and how many were down at once, from the records in the pods. */
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { addSeconds, secondsBetween } from "../../../go/seconds-between.ts";
import type { PodStanding } from "./pod-standing.ts";

/** Pods that one decision changed in place. */
export interface Batch {
  /** time of the change, RFC3339 */
  readonly at: string;
  /** names of pods as namespace/name, sorted */
  readonly pods: readonly string[];
  /** number of the batch's pods that are ready now */
  readonly ready: number;
}

/** A number of pods that are down, from a point of time on. */
interface DownPoint {
  readonly atSeconds: number;
  readonly down: number;
}

/** Limit of points in a chart. */
const MAX_POINTS = 500;

/** Pods of one write, at second `at` plus `place` / `places`. */
interface Write {
  readonly at: string;
  readonly place: number;
  readonly places: number;
  readonly pods: readonly PodStanding[];
}

/** The batches, newest first. */
export function batchesOf(updated: readonly PodStanding[], maxUnavailable: number): readonly Batch[] {
  return writesOf(updated, maxUnavailable)
    .toReversed()
    .map(({ at, pods }) => ({
      at,
      pods: pods.map(({ namespace, name }) => `${namespace}/${name}`).sort(compareUtf8),
      ready: pods.filter(({ isReady }) => isReady).length,
    }));
}

/** The number of pods that were down at once. A pod counts from its change until it last became ready. */
function downOverTime(updated: readonly PodStanding[], { from, seconds, maxUnavailable }: Span): readonly DownPoint[] {
  const changes = new Map<number, number>();
  const change = (at: number, by: number) => changes.set(at, (changes.get(at) ?? 0) + by);
  for (const { begin, end } of writesOf(updated, maxUnavailable).flatMap((write) => timesDown(write, from))) {
    // Changes before the start of the chart are left out.
    if (begin < 0 || begin > seconds) continue;
    change(begin, 1);
    if (end < seconds) change(end, -1);
  }
  let down = 0;
  const points = [...changes]
    .sort(([a], [b]) => a - b)
    .map(([atSeconds, by]) => {
      down += by;
      return { atSeconds, down };
    });
  return thinned(points);
}

interface Span {
  /** start of the time, RFC3339 */
  readonly from: string;
  readonly seconds: number;
  readonly maxUnavailable: number;
}

/** The times for which a pod was down, in seconds since `from`; empty for a pod that stayed ready. */
function timesDown(write: Write, from: string): readonly { readonly begin: number; readonly end: number }[] {
  const second = secondsBetween(from, write.at) ?? 0;
  const begin = second + write.place / write.places;
  return write.pods
    .map(({ isReady, turnedAt = "" }) => (isReady ? endOf(second, write, secondsBetween(from, turnedAt)) : FOREVER))
    .filter((end) => end > begin)
    .map((end) => ({ begin, end }));
}

const FOREVER = Number.POSITIVE_INFINITY;

/** The end of a pod's downtime. A pod that recovered within the second of its write made room for the next one. */
function endOf(second: number, { place, places }: Write, turned: number | undefined): number {
  if (turned === undefined) return -FOREVER;
  return turned === second ? second + (place + 1) / places : turned;
}

/** The writes, oldest first. */
function writesOf(updated: readonly PodStanding[], maxUnavailable: number): readonly Write[] {
  const bySecond = Map.groupBy(
    updated.filter(({ isInPlace, since }) => isInPlace && since !== undefined),
    ({ since }) => since ?? "",
  );
  return [...bySecond]
    .sort(([a], [b]) => compareUtf8(a, b))
    .flatMap(([at, pods]) => {
      const groups = pods.length > maxUnavailable ? apart(pods, at, maxUnavailable) : [pods];
      return groups.map((group, place) => ({ at, place, places: groups.length, pods: group }));
    });
}

/**
 * Splits the writes of one second: times have whole seconds, and a quick rollout writes several times in one. Only pods
 * that recovered within it can have made room for others.
 */
function apart(pods: readonly PodStanding[], at: string, size: number): readonly (readonly PodStanding[])[] {
  const { quick = [], other = [] } = Object.groupBy(pods, ({ isReady, turnedAt }) =>
    isReady && turnedAt === at ? "quick" : "other",
  );
  if (quick.length === 0 || size < 1) return [pods];
  const full = Array.from({ length: Math.ceil(quick.length / size) }, (_, index) =>
    quick.slice(index * size, (index + 1) * size),
  );
  return other.length === 0 ? full : [...full, other];
}

/** The points of a chart, up to its limit. It keeps the highest point of each group of neighbours. */
function thinned(points: readonly DownPoint[]): readonly DownPoint[] {
  const size = Math.ceil(points.length / MAX_POINTS);
  if (size <= 1) return points;
  return Array.from({ length: Math.ceil(points.length / size) }, (_, index) =>
    points.slice(index * size, (index + 1) * size),
  ).flatMap((some) => some.toSorted((a, b) => b.down - a.down)[0] ?? []);
}

// The progress of a rollout so far, by the times recorded in its pods.

/** A number of pods with the current version, from a point of time on. */
interface ProgressPoint {
  /** seconds since the start of the progress */
  readonly atSeconds: number;
  readonly updated: number;
}

export interface Progress {
  /** start of the progress, RFC3339 */
  readonly from: string;
  /** end of the progress, RFC3339 */
  readonly to: string;
  readonly seconds: number;
  /** true: no further change happens without help */
  readonly isOver: boolean;
  /** points with rising numbers; the first one is at 0 */
  readonly points: readonly ProgressPoint[];
  /** numbers of pods that were down after their change, over the same time */
  readonly down: ReturnType<typeof downOverTime>;
}

/** The time frame of a progress. */
export interface Course {
  /** start of the frame, RFC3339; undefined: it is unknown */
  readonly after: string | undefined;
  /** time of the change, RFC3339; undefined: it is unknown, and the progress begins with the first pod */
  readonly changedAt: string | undefined;
  /** end of the rollout, RFC3339; undefined: the rollout is running */
  readonly endedAt: string | undefined;
  readonly maxUnavailable: number;
  /** the present time, RFC3339 */
  readonly now: string;
}

/** Limit of points in a chart. */
/**
 * The progress of existing pods. Undefined if none has the current version, or no time is recorded. @param updated the
 * pods with the current version
 */
export function progressOf(updated: readonly PodStanding[], course: Course): Progress | undefined {
  const { endedAt, maxUnavailable, now } = course;
  const times = timesOf(updated);
  const from = beginOf(times, course);
  if (from === undefined) return undefined;
  const offset = (time: string) => secondsBetween(from, time) ?? 0;
  // Pods created after the end are not counted.
  const last = timesOf(endedAt === undefined ? updated : updated.filter(({ isInPlace }) => isInPlace)).at(-1) ?? from;
  const seconds = Math.max(0, offset(endedAt ?? now), offset(last));
  const at = (time: string) => Math.min(offset(time), seconds);
  const rising = times.filter((time) => at(time) >= 0);
  const before = updated.length - rising.length;
  const points = [{ atSeconds: 0, updated: before }, ...risesOf(rising, before, at)];
  return {
    from,
    to: endedAt === undefined ? now : (addSeconds(from, seconds) ?? now),
    seconds,
    isOver: endedAt !== undefined,
    points: thinnedPoints(points),
    down: downOverTime(updated, { from, seconds, maxUnavailable }),
  };
}

function timesOf(pods: readonly PodStanding[]): readonly string[] {
  return pods.flatMap(({ since }) => since ?? []).sort(compareUtf8);
}

/** The time of the change, or else the time of the first pod with the new version. */
function beginOf(times: readonly string[], { after, changedAt }: Course): string | undefined {
  const isLater = (time: string) => after === undefined || (secondsBetween(after, time) ?? -1) >= 0;
  const first = times.find(isLater);
  if (changedAt === undefined) return first ?? times[0];
  if (first === undefined) return times.length === 0 ? undefined : changedAt;
  // The clock that recorded the change may be ahead.
  return (secondsBetween(changedAt, first) ?? -1) >= 0 ? changedAt : first;
}

function risesOf(times: readonly string[], before: number, at: (time: string) => number): readonly ProgressPoint[] {
  return times.flatMap((time, index) =>
    times[index + 1] === time ? [] : [{ atSeconds: at(time), updated: before + index + 1 }],
  );
}

/** Keeps the first and the last point. */
function thinnedPoints(points: readonly ProgressPoint[]): readonly ProgressPoint[] {
  if (points.length <= MAX_POINTS) return points;
  const step = (points.length - 1) / (MAX_POINTS - 1);
  return Array.from({ length: MAX_POINTS }, (_, index) => points[Math.round(index * step)]).filter(
    (point) => point !== undefined,
  );
}
