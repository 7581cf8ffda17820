/** A pod's record of values that change in place: the container before the last write, and whether another runs. */
import type { ContainerStatus, Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { isJsonObject, jsonObjectOf } from "../../go/json/json-object.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { isHotUpgrade } from "./sidecar-containers.ts";
import { digestOf, recordKey, type Texts, valuesInPlace } from "./values-in-place.ts";

/** The record of one SidecarSet on a pod. */
export interface ValuesRecord {
  readonly digest: string;
  /** container → its run at its last ordered restart; absent: it runs since its injection */
  readonly before: Readonly<Record<string, RanBefore>>;
}

export interface RanBefore {
  /** "": nothing did */
  readonly id: string;
  /** as its image was written when it started */
  readonly image: string;
  /** RFC3339: when the restart was written */
  readonly since: string;
  /** the SidecarSet's image then, however it was spelled; absent: not known */
  readonly of?: string;
}

/** True if the values differ from the record, in any release: somebody else wrote them. */
export function hasForeignValues(pod: Pod, sidecarSet: SidecarSet): boolean {
  const wanted = valuesInPlace(sidecarSet)?.values;
  const digest = wanted && valuesRecord(pod, sidecarSet.metadata?.name ?? "")?.digest;
  if (wanted === undefined || digest === undefined) return false;
  const has = Object.keys(wanted).map((key) => [key, pod.metadata?.annotations?.[key] ?? null] as const);
  return digestOf(Object.fromEntries(has) as Texts) !== digest;
}

/** Undefined: the pod has none, or nobody can read it. */
export function valuesRecord({ metadata }: Pod, sidecarSetName: string): ValuesRecord | undefined {
  const record = jsonObjectOf(metadata?.annotations?.[recordKey(sidecarSetName)]);
  if (typeof record?.["digest"] !== "string") return undefined;
  const { digest, before } = record;
  const entries = Object.entries(isJsonObject(before) ? before : {}).flatMap(([name, ran]) => {
    if (!isJsonObject(ran)) return [];
    const { id, image, since, of } = ran;
    const isRead = typeof id === "string" && typeof image === "string" && typeof since === "string";
    return isRead ? [[name, { id, image, since, ...(typeof of === "string" ? { of } : {}) }] as const] : [];
  });
  return { digest, before: Object.fromEntries(entries) };
}

/** The record after a write at `now` that restarts `containers`; where it restarts others, what is recorded of these stays. */
export function recordValues(pod: Pod, sidecarSet: SidecarSet, containers: readonly string[], now: string): Texts {
  const digest = valuesInPlace(sidecarSet)?.digest;
  if (digest === undefined) return {};
  const name = sidecarSet.metadata?.name ?? "";
  const earlier = valuesRecord(pod, name);
  // A hot-upgrade slot may get the image that it already runs, and the kubelet restarts nothing then: the image itself
  // shows completion.
  const written = (sidecarSet.spec.containers ?? []).filter(
    (one) => !isHotUpgrade(one) && containers.includes(one.name),
  );
  const before = {
    ...earlier?.before,
    ...Object.fromEntries(
      written.map((one) => [one.name, { ...ranIn(pod, one.name, earlier), since: now, of: one.image ?? "" }]),
    ),
  };
  return { [recordKey(name)]: JSON.stringify({ digest, before }) };
}

/** The container's current run. Without a restart since the last write, the record has it. */
function ranIn(pod: Pod, container: string, earlier: ValuesRecord | undefined): Omit<RanBefore, "since"> {
  const id = containerIdOf(pod, container);
  const last = earlier?.before[container];
  if (last !== undefined && last.id === id) return last;
  return { id, image: pod.spec.containers.find(({ name }) => name === container)?.image ?? "" };
}

function containerIdOf({ status }: Pod, container: string): string {
  return status?.containerStatuses?.find(({ name }) => name === container)?.containerID ?? "";
}

/** Clocks of nodes may be behind by so much. */
const DOUBTED_SECONDS = 60;

/**
 * True when another container runs than before the write, and started after it. A container without a start time is not
 * ready, so it does not matter. `now`, RFC3339: absent when nobody waits for it.
 */
export function isRestarted({ containerID, state }: ContainerStatus, { id, since }: RanBefore, now?: string): boolean {
  if (containerID === undefined || containerID === id) return false;
  const startedAt = state?.running?.startedAt;
  if (now === undefined || !startedAt || (secondsBetween(since, startedAt) ?? 0) >= 0) return true;
  const waited = secondsBetween(since, now) ?? 0;
  // A write of the future: its pass had a clock that was ahead. When it was is not known; that it is long ago is.
  if (waited < -DOUBTED_SECONDS) return (secondsBetween(startedAt, now) ?? 0) >= 2 * DOUBTED_SECONDS;
  return waited >= DOUBTED_SECONDS;
}

/** A kubelet that could not pull has seen the last write. */
const PULL_FAILED = /^(?:ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull)$/;

/**
 * The image's spelling before the last write, until the node shows that it acted on the write. Until then the kubelet
 * may start the container with the earlier spelling and values. Undefined: it acted, or there was none.
 */
export function unseenSpelling(pod: Pod, sidecarSet: SidecarSet, container: string, now: string): string | undefined {
  const last = valuesRecord(pod, sidecarSet.metadata?.name ?? "")?.before[container];
  const status = pod.status?.containerStatuses?.find(({ name }) => name === container);
  if (last === undefined || PULL_FAILED.test(status?.state?.waiting?.reason ?? "")) return undefined;
  return status && isRestarted(status, last, now) ? undefined : last.image;
}
