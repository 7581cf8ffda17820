/** Decides the status of a SidecarSet from its matched pods: what was observed, never what is about to be done. */
import type { SidecarSet, SidecarSetStatus } from "../../api/sidecarset.ts";
import { each, type Sequence } from "../../go/sequence.ts";
import type { PodState } from "../pod/pod-state.ts";

/** The newest ControllerRevision and how often its name was taken already. */
export interface LatestRevision {
  readonly name: string;
  readonly collisionCount: number;
}

/** Counts of pods. Members that are zero and that the API leaves out then are left out. */
export function calculateStatus(
  sidecarSet: SidecarSet,
  pods: Sequence<PodState>,
  latest: LatestRevision,
): SidecarSetStatus {
  let [updatedPods, readyPods, updatedReadyPods] = [0, 0, 0];
  each(pods, ({ isUpdated, isConsistent, isReady }) => {
    if (isUpdated) updatedPods++;
    if (isConsistent && isReady) readyPods++;
    if (isUpdated && isConsistent && isReady) updatedReadyPods++;
  });
  const generation = sidecarSet.metadata?.generation ?? 0;
  return {
    ...(generation === 0 ? {} : { observedGeneration: generation }),
    matchedPods: pods.length,
    updatedPods,
    readyPods,
    ...(updatedReadyPods === 0 ? {} : { updatedReadyPods }),
    ...(latest.name === "" ? {} : { latestRevision: latest.name }),
    collisionCount: latest.collisionCount,
  };
}

/** True unless what is stored says the same already; observedGeneration counts only when it grows. */
export function isStatusChanged(stored: SidecarSetStatus | undefined, wanted: SidecarSetStatus): boolean {
  if ((wanted.observedGeneration ?? 0) > (stored?.observedGeneration ?? 0)) return true;
  if (stored?.collisionCount !== wanted.collisionCount) return true;
  if ((stored?.latestRevision ?? "") !== (wanted.latestRevision ?? "")) return true;
  const counts = ["matchedPods", "updatedPods", "readyPods", "updatedReadyPods"] as const;
  return counts.some((count) => (stored?.[count] ?? 0) !== (wanted[count] ?? 0));
}
