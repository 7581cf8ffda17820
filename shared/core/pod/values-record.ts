/** A pod's record of values that change in place: the container before the last write, and whether another one runs. */
import type { ContainerStatus, Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { isJsonObject, jsonObjectOf } from "../../go/json/json-object.ts";
import { secondsBetween } from "../../go/seconds-between.ts";
import { isHotUpgrade } from "./sidecar-containers.ts";
import { digestOf, recordKey, type Texts, valuesInPlace } from "./values-in-place.ts";

/** The record of one SidecarSet on a pod. */
export interface ValuesRecord {
  readonly digest: string;
  /** the run before the last ordered restart, by container; absent: the container runs since its injection */
  readonly before: Readonly<Record<string, RanBefore>>;
}

export interface RanBefore {
  /** id of the container; "": none ran */
  readonly id: string;
  /** image of the container, as it was written at its start */
  readonly image: string;
  /** time at which the restart was written, RFC3339 */
  readonly since: string;
  /** the SidecarSet's image at that time, in its own spelling; absent: it is unknown */
  readonly of?: string;
}

/** True if the values differ from the record, whichever release it is: somebody else wrote them. */
export function hasForeignValues(pod: Pod, sidecarSet: SidecarSet): boolean {
  const wanted = valuesInPlace(sidecarSet)?.values;
  const digest = wanted && valuesRecord(pod, sidecarSet.metadata?.name ?? "")?.digest;
  if (wanted === undefined || digest === undefined) return false;
  const has = Object.keys(wanted).map((key) => [key, pod.metadata?.annotations?.[key] ?? null] as const);
  return digestOf(Object.fromEntries(has) as Texts) !== digest;
}

/** The pod's record; undefined: the pod has none, or it cannot be read. */
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

/** The record after a write at `now` that restarts `containers`. Records of other containers stay. */
export function recordValues(pod: Pod, sidecarSet: SidecarSet, containers: readonly string[], now: string): Texts {
  const digest = valuesInPlace(sidecarSet)?.digest;
  if (digest === undefined) return {};
  const name = sidecarSet.metadata?.name ?? "";
  const earlier = valuesRecord(pod, name);
  // If a hot-upgrade slot gets the image that it already runs, the kubelet restarts nothing, and the image itself shows
  // completion.
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

/** The container's present run. Without a restart since the last write, the record has it. */
function ranIn(pod: Pod, container: string, earlier: ValuesRecord | undefined): Omit<RanBefore, "since"> {
  const id = containerIdOf(pod, container);
  const last = earlier?.before[container];
  if (last !== undefined && last.id === id) return last;
  return { id, image: pod.spec.containers.find(({ name }) => name === container)?.image ?? "" };
}

function containerIdOf({ status }: Pod, container: string): string {
  return status?.containerStatuses?.find(({ name }) => name === container)?.containerID ?? "";
}

/** Seconds by which the clocks of nodes may be behind. */
const DOUBTED_SECONDS = 60;

/**
 * True if another container runs than before the write, and it started after the write. A container without a start
 * time is not ready, so it does not matter. `now`: RFC3339; absent if nobody waits.
 */
export function isRestarted({ containerID, state }: ContainerStatus, { id, since }: RanBefore, now?: string): boolean {
  if (containerID === undefined || containerID === id) return false;
  const startedAt = state?.running?.startedAt;
  if (now === undefined || !startedAt || (secondsBetween(since, startedAt) ?? 0) >= 0) return true;
  const waited = secondsBetween(since, now) ?? 0;
  // The write is in the future, because its pass had a clock that was ahead. Its real time is unknown, but long ago.
  if (waited < -DOUBTED_SECONDS) return (secondsBetween(startedAt, now) ?? 0) >= 2 * DOUBTED_SECONDS;
  return waited >= DOUBTED_SECONDS;
}

/** Matches a failed pull: the kubelet has seen the last write. */
const PULL_FAILED = /^(?:ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull)$/;

/**
 * The image's spelling before the last write, until the node shows that it acted on the write. Until then the kubelet
 * may start the container with the earlier spelling and values. Undefined: it has acted, or nothing was written.
 */
export function unseenSpelling(pod: Pod, sidecarSet: SidecarSet, container: string, now: string): string | undefined {
  const last = valuesRecord(pod, sidecarSet.metadata?.name ?? "")?.before[container];
  const status = pod.status?.containerStatuses?.find(({ name }) => name === container);
  if (last === undefined || PULL_FAILED.test(status?.state?.waiting?.reason ?? "")) return undefined;
  return status && isRestarted(status, last, now) ? undefined : last.image;
}
