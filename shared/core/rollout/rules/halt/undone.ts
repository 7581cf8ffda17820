/** The SidecarSet's annotation about releases that were undone. */
import type { SidecarSet } from "../../../../api/sidecarset.ts";
import { steeringOf } from "../../../pod/steering/steering.ts";

/** The reason why a release, named by its hash, was undone; undefined: it was not undone. */
export function undoneBefore(sidecarSet: SidecarSet, hash: string): string | undefined {
  return steeringOf(sidecarSet).undone?.findLast(({ from }) => from === hash)?.message;
}

/** The last undo; undefined: there was none. `isCurrent`: no release followed it. */
export function lastUndone(
  sidecarSet: SidecarSet,
): { readonly message: string; readonly at: string; readonly isCurrent: boolean } | undefined {
  const { undone, isPutBack } = steeringOf(sidecarSet);
  const last = undone?.at(-1);
  return last && { message: last.message, at: last.at, isCurrent: isPutBack };
}

// Finds whether a release's rollout has finished. Later failures of its pods do not concern the rollout.

/** True if the stored status says so. `latestRevision`: revision of the release. */
export function wasFinished({ status }: SidecarSet, latestRevision: string | undefined): boolean {
  if (!latestRevision || status?.latestRevision !== latestRevision) return false;
  return status.conditions?.some(({ type, reason }) => type === "Progressing" && reason === "Finished") === true;
}

/** True when the CRD is OpenKruise's, which keeps no conditions. */
export function forgetsEnds({ status }: SidecarSet): boolean {
  return status !== undefined && status.conditions === undefined;
}
