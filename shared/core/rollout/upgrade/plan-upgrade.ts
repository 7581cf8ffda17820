/** The patch that brings one pod to the SidecarSet's images: images and annotations in one write. */
import type { Container, ContainerStatus, Pod } from "../../../api/kubernetes.ts";
import {
  INJECTED_LIST_ANNOTATION,
  VERSION_ALT_ANNOTATION_PREFIX,
  VERSION_ANNOTATION_PREFIX,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../../api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../../api/sidecarset.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { isSameImage, spellingsOf } from "../../pod/image-alias.ts";
import { nativeSidecars } from "../../pod/native-sidecars.ts";
import { patchPodMetadata } from "../../pod/patch-pod-metadata.ts";
import { isHotUpgrade, slotsOf, workingSlots } from "../../pod/sidecar-containers.ts";
import { lastContainerStatuses } from "../../pod/update-state.ts";
import { hasValuesInPlace, hasValuesOf, withValuesInPlace } from "../../pod/values-in-place.ts";
import { isRestarted, recordValues, unseenSpelling, valuesRecord } from "../../pod/values-record.ts";
import { emptied, slotsToEmpty, type Target, targetSlot } from "./hot-slot.ts";
import {
  type Annotations,
  changedAnnotations,
  containerOf,
  imageChanges,
  type PodPlan,
  type Retarget,
} from "./pod-change.ts";
import { recordHash, recordState, type UpgradeFacts } from "./record-upgrade.ts";

export interface UpgradeOptions extends UpgradeFacts {
  /** SidecarSets that match a pod without the list of injected ones; absent: unknown */
  readonly matching?: readonly string[];
}

/** Refuses, without touching the pod, when a container is missing or an annotation cannot be merged. */
export function planUpgrade(pod: Pod, sidecarSet: SidecarSet, options: UpgradeOptions): PodPlan {
  const injected = withValuesInPlace(sidecarSet);
  const retargets = retargetsOf(pod, sidecarSet, options);
  if (typeof retargets === "string") return { kind: "refused", message: retargets };
  const changed = retargets.map(({ container }) => container);
  const before = pod.metadata?.annotations;
  const patched = patchPodMetadata(
    {
      ...before,
      ...injectedList(before, options.matching),
      ...annotateHot(pod, retargets),
      ...recordHash(pod, sidecarSet, options),
      ...recordState(pod, sidecarSet, changed, options.now),
    },
    injected.spec.patchPodMetadata ?? [],
  );
  if (patched.kind === "refused")
    return { kind: "refused", message: `annotation ${patched.annotation}: ${patched.message}` };
  return {
    kind: "planned",
    images: imageChanges(pod, retargets),
    annotations: changedAnnotations(before, {
      ...patched.annotations,
      ...recordValues(pod, sidecarSet, changed, options.now),
    }),
  };
}

/** Gives every unneeded slot its empty image. The recorded hash stays. */
export function planFlip(pod: Pod, sidecarSet: SidecarSet, now: string): PodPlan {
  const retargets = slotsToEmpty(pod, sidecarSet);
  const changed = retargets.map(({ container }) => container);
  const after = { ...mergeAnnotations(retargets), ...recordState(pod, sidecarSet, changed, now) };
  return {
    kind: "planned",
    images: imageChanges(pod, retargets),
    annotations: changedAnnotations(pod.metadata?.annotations, after),
  };
}

/** A sentence when a container is missing. */
function retargetsOf(pod: Pod, sidecarSet: SidecarSet, options: UpgradeFacts): readonly Retarget[] | string {
  const retargets: Retarget[] = [];
  for (const sidecar of sidecarSet.spec.containers ?? []) {
    const retarget = isHotUpgrade(sidecar)
      ? retargetHot(pod, sidecar, sidecarSet)
      : retargetCold(pod, sidecar, sidecarSet, options.now);
    if (typeof retarget === "string") return retarget;
    retargets.push(...retarget);
  }
  const natives = options.withNatives ? retargetNatives(pod, sidecarSet) : [];
  return typeof natives === "string" ? natives : [...retargets, ...natives];
}

/** Empty when the image is already there; a sentence when the container is missing. */
function retargetCold(
  pod: Pod,
  sidecar: SidecarContainer,
  sidecarSet: SidecarSet,
  now: string,
): readonly Retarget[] | string {
  const { name, image = "" } = sidecar;
  const container = containerOf(pod, name);
  if (!container) return `the pod has no container ${name}`;
  const isThere = container.image === image || isSpelledOtherwise(pod, container, sidecarSet, image);
  if (isThere && hasValuesOf(pod, sidecarSet, name)) return [];
  if (!hasValuesInPlace(sidecarSet)) return [{ container: name, image, annotations: {} }];
  const spelling = spellingFor(pod, sidecar, sidecarSet, now);
  return typeof spelling === "string" ? spelling : [{ container: name, image: spelling.image, annotations: {} }];
}

/** True when an earlier change of values wrote this very image in another spelling, so the image is not new. */
function isSpelledOtherwise(
  pod: Pod,
  { name, image = "" }: Container,
  sidecarSet: SidecarSet,
  wanted: string,
): boolean {
  if (!hasValuesInPlace(sidecarSet)) return false;
  const last = valuesRecord(pod, sidecarSet.metadata?.name ?? "")?.before[name];
  return last?.of === wanted && isSameImage(image, wanted);
}

/**
 * The sidecar's image in a spelling that makes the kubelet restart the container. It differs from the pod's spec, and
 * from the image before the last write, which the kubelet may still compare with.
 */
function spellingFor(
  pod: Pod,
  { name, image = "", imagePullPolicy }: SidecarContainer,
  sidecarSet: SidecarSet,
  now: string,
): { readonly image: string } | string {
  const before = containerOf(pod, name)?.image ?? "";
  const unseen = unseenSpelling(pod, sidecarSet, name, now);
  const status = pod.status?.containerStatuses?.find((one) => one.name === name) ?? { name };
  const known = isImageIdOf(image, { pod, status, sidecarSet, before, now }) ? status : { ...status, imageID: "" };
  const ways = [image, ...spellingsOf({ image, ...(imagePullPolicy ? { imagePullPolicy } : {}) }, known)];
  // Spellings alternate: a kubelet delays a container that starts with the same spelling twice within ten minutes.
  const next = ways.indexOf(before) + 1;
  const spelling = [...ways.slice(next), ...ways.slice(0, next)].find((way) => way !== before && way !== unseen);
  if (spelling !== undefined) return { image: spelling };
  if (ways.some((way) => way !== before))
    return `container ${name} is restarted for its values when its node has acted on the last change: its image ${image} can be written in two ways only`;
  const why = status.imageID ? "" : ": it has no imageID yet";
  return `container ${name} cannot be restarted for its values, because its image ${image} cannot be written in another way that means the same${why}`;
}

interface Running {
  readonly pod: Pod;
  readonly status: ContainerStatus;
  readonly sidecarSet: SidecarSet;
  /** the image in the pod's spec */
  readonly before: string;
  readonly now: string;
}

/** True if the imageID certainly belongs to this image. Only then its digest may be written beside the tag. */
function isImageIdOf(image: string, { pod, status, sidecarSet, before, now }: Running): boolean {
  if (!isSameImage(before, image)) return false;
  const name = sidecarSet.metadata?.name ?? "";
  const last = valuesRecord(pod, name)?.before[status.name];
  if (last === undefined) return true;
  // Until a container runs that started after the last write, the imageID may belong to any earlier image.
  if (status.state?.running?.startedAt && isRestarted(status, last, now)) return true;
  const recorded = lastContainerStatuses(pod, name)?.[status.name];
  return recorded?.imageID === status.imageID && isSameImage(last.image, image);
}

/** Completed plain init containers keep their images. */
function retargetNatives(pod: Pod, sidecarSet: SidecarSet): readonly Retarget[] | string {
  const retargets: Retarget[] = [];
  for (const { name, image = "" } of nativeSidecars(sidecarSet)) {
    const container = pod.spec.initContainers?.find((one) => one.name === name);
    if (!container) return `the pod has no init container ${name}`;
    if (container.image !== image) retargets.push({ container: name, image, annotations: {}, list: "initContainers" });
  }
  return retargets;
}

/** Compat: the new image is compared with the partner's (pod-update, hot/working-already-has-target-image-noop). */
function retargetHot(pod: Pod, sidecar: SidecarContainer, sidecarSet: SidecarSet): readonly Retarget[] | string {
  const { slot, partner } = targetSlot(pod, sidecar, sidecarSet.metadata?.name ?? "");
  const { image = "" } = sidecar;
  if (!containerOf(pod, slot)) return `the pod has no container ${slot}`;
  const other = containerOf(pod, partner);
  if (!other) return `the pod has no container ${partner}`;
  if (other.image === image) return emptiedSlot(pod, sidecar, { slot, partner });
  const version = sidecarSet.metadata?.resourceVersion ?? "";
  const annotations = {
    [`${VERSION_ANNOTATION_PREFIX}${slot}`]: version,
    [`${VERSION_ALT_ANNOTATION_PREFIX}${slot}`]:
      pod.metadata?.annotations?.[`${VERSION_ANNOTATION_PREFIX}${partner}`] ?? "",
    [`${VERSION_ALT_ANNOTATION_PREFIX}${partner}`]: version,
  };
  return [{ container: slot, image, annotations, working: [sidecar.name, slot] }];
}

/**
 * Empties the slot of the upgrade, if it is down, when the pod returns to the image that its old slot still serves.
 * Compat: OpenKruise leaves that slot, and the pod stays down (docs/compatibility.md).
 */
function emptiedSlot(pod: Pod, sidecar: SidecarContainer, { slot, partner }: Target): readonly Retarget[] {
  const isGivenUp = slotsOf(pod, sidecar.name).working === slot && containerOf(pod, slot)?.image !== sidecar.image;
  return isGivenUp ? [{ ...emptied(sidecar, slot, partner), working: [sidecar.name, partner] }] : [];
}

/** The versions that containers read from their environment, and the slot that works from now on. */
function annotateHot(pod: Pod, retargets: readonly Retarget[]): Annotations {
  const working = retargets.flatMap(({ working }) => (working ? [working] : []));
  return {
    ...mergeAnnotations(retargets),
    ...(working.length === 0
      ? {}
      : { [WORKING_HOT_UPGRADE_ANNOTATION]: sortedGoJson({ ...knownSlots(pod), ...Object.fromEntries(working) }) }),
  };
}

/** Values that are not texts become "", as in Go's map of texts. */
function knownSlots(pod: Pod): Annotations {
  const slots = Object.entries(workingSlots(pod));
  return Object.fromEntries(slots.map(([sidecar, slot]) => [sidecar, typeof slot === "string" ? slot : ""]));
}

function mergeAnnotations(retargets: readonly Retarget[]): Annotations {
  return Object.fromEntries(retargets.flatMap(({ annotations }) => Object.entries(annotations)));
}

/**
 * Adds the list of injected SidecarSets if it is missing. A pass never needs it, because it reads only pods that have
 * the list. Empty when none matches.
 */
function injectedList(annotations: Annotations | undefined, matching: readonly string[] | undefined): Annotations {
  if (annotations?.[INJECTED_LIST_ANNOTATION] || !matching) return {};
  return { [INJECTED_LIST_ANNOTATION]: matching.join(",") };
}
