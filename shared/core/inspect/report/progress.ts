/** Decides how a rollout went so far, from the times that are recorded in the pods. */
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { addSeconds, secondsBetween } from "../../../go/seconds-between.ts";
import { downOverTime } from "./batches.ts";
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
  /** nothing more comes by itself */
  readonly isOver: boolean;
  /** rising; the first is at 0 */
  readonly points: readonly ProgressPoint[];
  /** pods that were down after their change, over the same time */
  readonly down: ReturnType<typeof downOverTime>;
}

/** What a progress is seen in. */
export interface Course {
  /** RFC3339: nothing before is part of it; undefined: not known */
  readonly after: string | undefined;
  /** RFC3339: when the change was made; undefined: not known, it begins with the first pod */
  readonly changedAt: string | undefined;
  /** RFC3339: since when nothing more comes by itself; undefined: it goes on */
  readonly endedAt: string | undefined;
  readonly maxUnavailable: number;
  /** RFC3339 */
  readonly now: string;
}

/** A chart is no finer than this. */
const MAX_POINTS = 500;

/**
 * Only pods that are there now are counted. Undefined while none has the current version, or no time is recorded.
 * @param updated the pods that have the current version
 */
export function progressOf(updated: readonly PodStanding[], course: Course): Progress | undefined {
  const { endedAt, maxUnavailable, now } = course;
  const times = timesOf(updated);
  const from = beginOf(times, course);
  if (from === undefined) return undefined;
  const offset = (time: string) => secondsBetween(from, time) ?? 0;
  // Pods that were made since the end are no part of it.
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

/** With the change, or where that is not known, with the first pod that got it. */
function beginOf(times: readonly string[], { after, changedAt }: Course): string | undefined {
  const isLater = (time: string) => after === undefined || (secondsBetween(after, time) ?? -1) >= 0;
  const first = times.find(isLater);
  if (changedAt === undefined) return first ?? times[0];
  if (first === undefined) return times.length === 0 ? undefined : changedAt;
  // The clock of who recorded the change may be ahead.
  return (secondsBetween(changedAt, first) ?? -1) >= 0 ? changedAt : first;
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
