/** Tells which of a hot-upgrade sidecar's two containers gets the new image, and when the other one is emptied. */
import type { Pod } from "../../../api/kubernetes.ts";
import { VERSION_ALT_ANNOTATION_PREFIX, VERSION_ANNOTATION_PREFIX } from "../../../api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../../api/sidecarset.ts";
import { isConsistent } from "../../pod/is-consistent.ts";
import { isRunningAndReady } from "../../pod/is-ready.ts";
import { isHotUpgrade, otherSlots, sidecarContainerNames, slotNames, slotsOf } from "../../pod/sidecar-containers.ts";
import { containerOf, type Retarget } from "./pod-change.ts";

export interface Target {
  readonly slot: string;
  /** the container that serves until the flip */
  readonly partner: string;
}

/** The empty slot, or else the slot that is down, or else the slot that does not work. */
export function targetSlot(pod: Pod, sidecar: SidecarContainer, sidecarSetName: string): Target {
  const [first, second] = slotNames(sidecar.name);
  const empty = emptyImageOf(sidecar);
  if (imageOf(pod, first) === empty) return { slot: first, partner: second };
  if (imageOf(pod, second) === empty) return { slot: second, partner: first };
  const isUp = (slot: string) =>
    pod.status?.containerStatuses?.find(({ name }) => name === slot)?.ready === true &&
    isConsistent(pod, sidecarSetName, new Set([slot]));
  const [isFirstUp, isSecondUp] = [isUp(first), isUp(second)];
  if (isFirstUp && !isSecondUp) return { slot: second, partner: first };
  if (!isFirstUp && isSecondUp) return { slot: first, partner: second };
  const { working, other } = slotsOf(pod, sidecar.name);
  return { slot: other, partner: working };
}

/** Every idle slot that still holds an image other than its empty one, with the annotations for emptying it. */
export function slotsToEmpty(pod: Pod, sidecarSet: SidecarSet): readonly Retarget[] {
  return (sidecarSet.spec.containers ?? []).filter(isHotUpgrade).flatMap((sidecar) => {
    const { working, other } = slotsOf(pod, sidecar.name);
    if (!containerOf(pod, other) || imageOf(pod, other) === emptyImageOf(sidecar)) return [];
    return [emptied(sidecar, other, working)];
  });
}

/** The slot with its empty image; `partner` keeps serving. */
export function emptied(sidecar: SidecarContainer, slot: string, partner: string): Retarget {
  const annotations = {
    [`${VERSION_ANNOTATION_PREFIX}${slot}`]: "0",
    [`${VERSION_ALT_ANNOTATION_PREFIX}${partner}`]: "0",
  };
  return { container: slot, image: emptyImageOf(sidecar), annotations };
}

/** True when a hot upgrade is complete except for the old slot, which may be emptied now. */
export function canFlip(pod: Pod, sidecarSet: SidecarSet): boolean {
  if (slotsToEmpty(pod, sidecarSet).length === 0) return false;
  const others = otherSlots(pod, sidecarSet);
  const serving = new Set([...sidecarContainerNames(sidecarSet)].filter((name) => !others.has(name)));
  return isConsistent(pod, sidecarSet.metadata?.name ?? "", serving) && isServing(pod, sidecarSet);
}

/** True if the pod is ready, or every container except those to be emptied is. */
export function isServing(pod: Pod, sidecarSet: SidecarSet): boolean {
  const others = otherSlots(pod, sidecarSet);
  const statuses = (pod.status?.containerStatuses ?? []).filter(({ name }) => !others.has(name));
  return isRunningAndReady(pod) || statuses.every(({ ready }) => ready === true);
}

function emptyImageOf(sidecar: SidecarContainer): string {
  return sidecar.upgradeStrategy?.hotUpgradeEmptyImage ?? "";
}

function imageOf(pod: Pod, container: string): string {
  return containerOf(pod, container)?.image ?? "";
}
