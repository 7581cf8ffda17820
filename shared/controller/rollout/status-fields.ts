/** The fields of a status that passes write: what a newer version has put beside them is left alone. */
import type { SidecarSetStatus } from "../../api/sidecarset.ts";

const FIELDS: Readonly<Record<keyof SidecarSetStatus, true>> = {
  observedGeneration: true,
  matchedPods: true,
  updatedPods: true,
  readyPods: true,
  updatedReadyPods: true,
  latestRevision: true,
  collisionCount: true,
  conditions: true,
  selection: true,
  ledgerNamespace: true,
  observedAnnotations: true,
  waves: true,
};

export const STATUS_FIELDS = Object.keys(FIELDS) as readonly (keyof SidecarSetStatus)[];

/** Without what is not ours. */
export function ownStatus(status: SidecarSetStatus): SidecarSetStatus {
  return Object.fromEntries(Object.entries(status).filter(([field]) => field in FIELDS));
}
