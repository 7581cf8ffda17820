/** The state of one pod in a rollout: updated, consistent, ready. */
import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, UPGRADABLE_CONDITION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { byText } from "../../go/by-text.ts";
import type { ResourceChange } from "../actions.ts";
import { isConsistent } from "./is-consistent.ts";
import { lacksContainers } from "./is-matched.ts";
import { isIgnored, isReady, isRunningAndReady } from "./is-ready.ts";
import { type NativeState, nativeStateOf } from "./native-sidecars.ts";
import { type DrainHold, drainHold, otherDrains, readUpgradeRecords } from "./pod-records.ts";
import { sidecarContainerNames } from "./sidecar-containers.ts";
import { hasValuesInPlace, hasValuesOf } from "./values-in-place.ts";
import { hasForeignValues } from "./values-record.ts";

/**
 * begin: mark the pod in an annotation; resize: write `changes`; wait: the node is working; update: write images and
 * records; none: nothing to do.
 */
export interface ResizeState {
  readonly step: "begin" | "resize" | "wait" | "update" | "none";
  readonly changes: readonly ResourceChange[];
  /** true: the pod uses budget, although it is not updated yet */
  readonly isUnderWay: boolean;
  /** true: an updated pod uses no budget while it waits for less; absent: it does */
  readonly isFree?: boolean;
  /** the kubelet's reason why the node does not resize; undefined: it does, or it has done so */
  readonly hindrance?: string | undefined;
}

/** A matched pod and its observed state, computed once in a pass. */
export interface PodState {
  readonly pod: Pod;
  /** true: the pod has the SidecarSet's hash */
  readonly isUpdated: boolean;
  /** true: every sidecar container runs what the pod's spec says */
  readonly isConsistent: boolean;
  readonly isReady: boolean;
  /** true: the pod runs and is Ready. During a hot upgrade it can be true although the pod is not ready */
  readonly isWorking: boolean;
  /** true: the pod's condition SidecarSetUpgradable is False, for any SidecarSet; absent: it is not */
  readonly isDoubted?: boolean;
  /** true: the pod was never ready, and such pods use no budget; absent: it uses budget while it is down */
  readonly isIgnored?: boolean;
  /** state of the pod's native sidecars; absent: they are not upgraded in place */
  readonly native?: NativeState | undefined;
  /** state of the pod's resources; absent: they are not changed in place */
  readonly resize?: ResizeState | undefined;
  /** this SidecarSet drains the pod; absent: it does not */
  readonly drain?: DrainHold | undefined;
  /** true: another SidecarSet drains the pod, so it uses budget; absent: none does */
  readonly isDrainedElsewhere?: boolean;
  /** false: the pod is not reserved; absent: it is unknown */
  readonly isReservedNow?: boolean;
}

/** The state of a pod. `kubelets`: versions by node; undefined: no native sidecar changes in place. `now`: RFC3339 */
export function podStateOf(
  pod: Pod,
  sidecarSet: SidecarSet,
  kubelets: ReadonlyMap<string, string> | undefined,
  now?: string,
): PodState {
  const { name = "" } = sidecarSet.metadata ?? {};
  const drain = drainHold(pod, name);
  const native = kubelets && nativeStateOf(pod, sidecarSet, kubelets);
  const areConsistent = isConsistent(pod, name, sidecarContainerNames(sidecarSet), now);
  return {
    pod,
    isUpdated: isUpdated(pod, sidecarSet),
    isConsistent: areConsistent && native?.isConsistent !== false,
    isReady: isReady(pod, sidecarSet),
    isWorking: isRunningAndReady(pod),
    ...(drain ? { drain } : {}),
    ...(otherDrains(pod, name, now).length > 0 ? { isDrainedElsewhere: true } : {}),
    ...(isDoubted(pod) ? { isDoubted: true } : {}),
    ...(isIgnored(pod, sidecarSet) ? { isIgnored: true } : {}),
    native,
  };
}

function isDoubted({ status }: Pod): boolean {
  return status?.conditions?.some((one) => one.type === UPGRADABLE_CONDITION && one.status === "False") === true;
}

/** True for a pod with the release's hash and values. A container would read other values at its next start. */
function isUpdated(pod: Pod, sidecarSet: SidecarSet): boolean {
  if (!isSameHash(pod, sidecarSet, HASH_ANNOTATION)) return false;
  return hasValuesOf(pod, sidecarSet) || !isUpgradable(pod, sidecarSet);
}

/** True for a pod of the release that is down after somebody wrote other values to it. It still uses budget. */
export function isDownWithOtherValues(
  { pod, isUpdated: isDone, isConsistent: runs, isReady: works }: PodState,
  sidecarSet: SidecarSet,
) {
  return hasValuesInPlace(sidecarSet) && !isDone && !(runs && works) && isSameHash(pod, sidecarSet, HASH_ANNOTATION);
}

/**
 * True if somebody else wrote values of this SidecarSet to the pod. For other variables this is unknown, because no
 * record has them.
 */
export function hasOtherValues(pod: Pod, sidecarSet: SidecarSet): boolean {
  if (!hasValuesInPlace(sidecarSet) || !isUpgradable(pod, sidecarSet)) return false;
  return (
    hasForeignValues(pod, sidecarSet) || (isSameHash(pod, sidecarSet, HASH_ANNOTATION) && !isUpdated(pod, sidecarSet))
  );
}

/** True when only images differ between the SidecarSet and the injected version. */
export function isUpgradable(pod: Pod, sidecarSet: SidecarSet): boolean {
  return isSameHash(pod, sidecarSet, HASH_WITHOUT_IMAGE_ANNOTATION);
}

/** True if an outdated pod can be updated in place: only images or resizable resources differ, and its node can. */
export function canBeUpdated(
  { pod, native, resize }: Pick<PodState, "pod" | "native" | "resize">,
  sidecarSet: SidecarSet,
) {
  if (lacksContainers(pod, sidecarSet)) return false;
  return (isUpgradable(pod, sidecarSet) || resize !== undefined) && native?.hindrance === undefined;
}

function isSameHash(pod: Pod, sidecarSet: SidecarSet, annotation: string): boolean {
  const wanted = sidecarSet.metadata?.annotations?.[annotation] ?? "";
  return recordedHash(pod.metadata?.annotations?.[annotation], sidecarSet.metadata?.name ?? "") === wanted;
}

export function uidOf({ metadata }: Pod): string {
  return metadata?.uid ?? "";
}

// The hash of a SidecarSet in a pod's annotation, which every decision reads from every pod.

/** Reads the hash from kruise.io/sidecarset-hash or …-hash-without-image; "": no entry for that SidecarSet. */
export function recordedHash(text: string | undefined, sidecarSetName: string): string {
  // A null value is "" in Go.
  return text ? hashIn(text, sidecarSetName) : "";
}

const hashIn = byText((text, sidecarSetName) => readUpgradeRecords(text).records[sidecarSetName]?.hash ?? "");
