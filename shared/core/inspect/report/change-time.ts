/** Decides when a SidecarSet became what it is now, and when its rollout came to rest, as far as that is recorded. */
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { lastUndone } from "../../rollout/halt/undone.ts";
import { lastSpecWrite } from "../../rollout/missed/selection.ts";
import type { Course } from "./progress.ts";
import type { RevisionRow } from "./revision-row.ts";

/**
 * A revision is recorded by the first pass after a change, which may be a minute later; and one that comes back has been
 * there for long: then it changed after whichever was recorded since.
 */
export function changeOf(sidecarSet: SidecarSet, rows: readonly RevisionRow[]): Pick<Course, "after" | "changedAt"> {
  const recordedAt = rows.find(({ isCurrent }) => isCurrent)?.createdAt;
  const after = latest(rows.flatMap(({ isCurrent, createdAt = "" }) => (isCurrent ? [] : createdAt)));
  const isBack = recordedAt !== undefined && after !== undefined && isBefore(recordedAt, after);
  const undone = lastUndone(sidecarSet);
  if (isBack && undone?.isCurrent && isBefore(after, undone.at)) return { after, changedAt: undone.at };
  const written = lastSpecWrite(sidecarSet.metadata);
  const isSince = written !== undefined && (after === undefined || isBefore(after, written));
  if (isBack) return { after, changedAt: undefined };
  return {
    after,
    changedAt: isSince && recordedAt !== undefined && isBefore(written, recordedAt) ? written : recordedAt,
  };
}

/** When `Progressing` ended; where no condition tells, with the last pod. */
export function endOf({ status }: SidecarSet, isAtRest: boolean): string | undefined {
  if (!isAtRest) return undefined;
  const progressing = status?.conditions?.find(({ type }) => type === "Progressing");
  return progressing?.status === "False" ? progressing.lastTransitionTime : NEVER;
}

/** Before any change, so that the last pod counts. */
const NEVER = "1970-01-01T00:00:00Z";

function latest(times: readonly string[]): string | undefined {
  return times.reduce<string | undefined>((a, b) => (a === undefined || isBefore(a, b) ? b : a), undefined);
}

function isBefore(one: string, other: string): boolean {
  return (secondsBetween(one, other) ?? 0) > 0;
}
