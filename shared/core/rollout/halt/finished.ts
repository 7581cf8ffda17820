/** Decides whether the rollout of a release was over before: what befalls its pods later is no matter of the rollout. */
import type { SidecarSet } from "../../../api/sidecarset.ts";

/** As the status says that is stored. `latestRevision`: of the release that is looked at. */
export function wasFinished({ status }: SidecarSet, latestRevision: string | undefined): boolean {
  if (!latestRevision || status?.latestRevision !== latestRevision) return false;
  return status.conditions?.some(({ type, reason }) => type === "Progressing" && reason === "Finished") === true;
}

/** True where the definition is OpenKruise's, which keeps no conditions. */
export function forgetsEnds({ status }: SidecarSet): boolean {
  return status !== undefined && status.conditions === undefined;
}
