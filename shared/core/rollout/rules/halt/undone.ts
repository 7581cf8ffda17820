/** Decides what a SidecarSet's annotation says of releases that were taken back. */
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";

/** Why a release, named by its hash, was taken back once; undefined: it was not. */
export function undoneBefore(sidecarSet: SidecarSet, hash: string): string | undefined {
  return steeringOf(sidecarSet).undone?.findLast(({ from }) => from === hash)?.message;
}

/** The last that was done; `isCurrent`: nothing was released since. undefined: nothing was ever undone. */
export function lastUndone(
  sidecarSet: SidecarSet,
): { readonly message: string; readonly at: string; readonly isCurrent: boolean } | undefined {
  const { undone, isPutBack } = steeringOf(sidecarSet);
  const last = undone?.at(-1);
  return last && { message: last.message, at: last.at, isCurrent: isPutBack };
}

// Decides whether the rollout of a release was over before: what befalls its pods later is no matter of the rollout.

/** As the status says that is stored. `latestRevision`: of the release that is looked at. */
export function wasFinished({ status }: SidecarSet, latestRevision: string | undefined): boolean {
  if (!latestRevision || status?.latestRevision !== latestRevision) return false;
  return status.conditions?.some(({ type, reason }) => type === "Progressing" && reason === "Finished") === true;
}

/** True where the definition is OpenKruise's, which keeps no conditions. */
export function forgetsEnds({ status }: SidecarSet): boolean {
  return status !== undefined && status.conditions === undefined;
}
