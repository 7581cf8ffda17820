/** Decides with which exit code `status -w` ends, and when it goes on watching. */
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { endOf } from "../../../shared/core/rollout/book.ts";
import { EFFECTS } from "../../../shared/core/rollout/hold-effects.ts";
import type { Progress } from "./progress.ts";

/** Watched, and it was not done in the end. */
export const NOT_DONE = 3;

interface WatchedSet {
  readonly sidecarSet: SidecarSet;
  readonly progress: Progress;
}

/** undefined: it goes on by itself, or no pass has seen it as it is. */
export function watchCode(status: WatchedSet): number | undefined {
  const { summary, isStopped, isUndone } = status.progress;
  if (isStopped) return NOT_DONE;
  if (isDone(status)) return 0;
  const end = endOf(summary);
  const isKnown = isSeen(status) || EFFECTS[summary.hold].follow === "off";
  if (end === undefined || isUndone || !isKnown) return undefined;
  return end === "well" ? 0 : NOT_DONE;
}

function isDone(status: WatchedSet): boolean {
  const { summary } = status.progress;
  return isSeen(status) && summary.updated === summary.matched && summary.updatedReady === summary.updated;
}

function isSeen({ sidecarSet: { metadata, status } }: WatchedSet): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
}
