/** The progress of a rollout so far, by the times recorded in its pods. */
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { addSeconds, secondsBetween } from "../../../go/seconds-between.ts";
import { downOverTime } from "./batches.ts";
import type { PodStanding } from "./pod-standing.ts";

/** The number of pods with the current version from that time on. */
interface ProgressPoint {
  /** seconds since the start of the progress */
  readonly atSeconds: number;
  readonly updated: number;
}

export interface Progress {
  /** RFC3339 */
  readonly from: string;
  /** RFC3339 */
  readonly to: string;
  readonly seconds: number;
  /** true when no further change comes by itself */
  readonly isOver: boolean;
  /** rising; the first point is at 0 */
  readonly points: readonly ProgressPoint[];
  /** pods that were down after their change, over the same time */
  readonly down: ReturnType<typeof downOverTime>;
}

/** The time frame of a progress. */
export interface Course {
  /** RFC3339: start of the frame; undefined: unknown */
  readonly after: string | undefined;
  /** RFC3339: time of the change; undefined: unknown, so the progress begins with the first pod */
  readonly changedAt: string | undefined;
  /** RFC3339: when the rollout came to rest; undefined: it is running */
  readonly endedAt: string | undefined;
  readonly maxUnavailable: number;
  /** RFC3339 */
  readonly now: string;
}

/** Limit of points in a chart. */
const MAX_POINTS = 500;

/**
 * Counts only existing pods. Undefined while none has the current version, or no time is recorded. @param updated the
 * pods with the current version
 */
export function progressOf(updated: readonly PodStanding[], course: Course): Progress | undefined {
  const { endedAt, maxUnavailable, now } = course;
  const times = timesOf(updated);
  const from = beginOf(times, course);
  if (from === undefined) return undefined;
  const offset = (time: string) => secondsBetween(from, time) ?? 0;
  // Pods created after the end are not part of it.
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
    points: thinned(points),
    down: downOverTime(updated, { from, seconds, maxUnavailable }),
  };
}

function timesOf(pods: readonly PodStanding[]): readonly string[] {
  return pods.flatMap(({ since }) => since ?? []).sort(compareUtf8);
}

/** The time of the change, or else of the first pod that got it. */
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
function thinned(points: readonly ProgressPoint[]): readonly ProgressPoint[] {
  if (points.length <= MAX_POINTS) return points;
  const step = (points.length - 1) / (MAX_POINTS - 1);
  return Array.from({ length: MAX_POINTS }, (_, index) => points[Math.round(index * step)]).filter(
    (point) => point !== undefined,
  );
}
