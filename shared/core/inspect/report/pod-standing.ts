/** One pod on the page: its state, the time of its last change, and the reason why it waits. */
import type { Pod } from "../../../api/kubernetes.ts";
import { HASH_ANNOTATION, IGNORE_MISSED_ANNOTATION, IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { jsonObjectOf } from "../../../go/json/json-object.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { containerFailure, failureText } from "../../pod/container-failure.ts";
import { hasOtherImage, ownContainers } from "../../pod/failing-pods.ts";
import { declinesSidecars, hasAllSidecars, isActive, isInjected, isMatched } from "../../pod/is-matched.ts";
import { isHeldElsewhere, readyCondition } from "../../pod/is-ready.ts";
import { parseUpgradeRecords } from "../../pod/pod-records.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { unreadableState } from "../../pod/update-state.ts";
import { workloadOf } from "../../pod/workload.ts";
import { classify, type PodClass } from "../../rollout/select/classify.ts";
import { downPods } from "../../rollout/select/down-pods.ts";

export const NO_WORKLOAD = "pods without a workload";

/** The state of a pod; each pod has exactly one. */
export type Standing =
  /** the pod runs the current version and is ready */
  | "updated"
  /** the pod has the current version, but is not ready yet */
  | "down"
  /** the pod has the current version, but one of its containers cannot run */
  | "failing"
  /** the pod is between two versions */
  | "changing"
  /** the pod is old and will be updated */
  | "waiting"
  /** the pod is old, and the update strategy's selector leaves it out */
  | "notSelected"
  /** the pod is old, and only a new pod gets the current version */
  | "notUpgradable"
  /** the pod is selected, but has no sidecars */
  | "without";

export interface PodStanding {
  readonly namespace: string;
  readonly name: string;
  /** name of the node; "" without a node */
  readonly node: string;
  /** workload with its namespace, such as `shop/deployment/web` */
  readonly workload: string;
  readonly standing: Standing;
  /** the reason in one clause; "" if there is none */
  readonly why: string;
  /** hash of the last version that the pod got; "" if not recorded */
  readonly hash: string;
  /** time at which the pod got that version, by creation or in place, RFC3339 */
  readonly since: string | undefined;
  /** true: the pod was changed in place at least once */
  readonly isInPlace: boolean;
  readonly isReady: boolean;
  /** true: the failing container, or its image, is not part of the SidecarSet; absent: it is, or no container fails */
  readonly isForeign?: true;
  /** updated, and kept unready by the scheduler or a gate that no pass opens; absent: it is not */
  readonly isHeldElsewhere?: true;
  /** time at which the pod's readiness last changed, RFC3339 */
  readonly turnedAt: string | undefined;
}

/**
 * The state of a pod; undefined for a pod that is finished, terminating or excluded from sidecars. `isMissed`: the pod
 * should have got sidecars at its creation, but did not.
 */
export function podStanding(state: PodState, sidecarSet: SidecarSet, isMissed: boolean): PodStanding | undefined {
  const { pod } = state;
  if (!isActive(pod)) return undefined;
  const standing = isMatched(pod, sidecarSet) ? standingOf(state, sidecarSet) : without(pod, sidecarSet, isMissed);
  return standing && { ...factsOf(pod, sidecarSet.metadata?.name ?? ""), ...standing };
}

function factsOf(pod: Pod, setName: string) {
  const { metadata = {}, spec } = pod;
  const { namespace = "", name = "", annotations = {} } = metadata;
  const record = parseUpgradeRecords(annotations[HASH_ANNOTATION]).records[setName];
  return {
    namespace,
    name,
    node: spec.nodeName ?? "",
    workload: `${namespace}/${workloadOf(pod).workload || NO_WORKLOAD}`,
    hash: record?.hash ?? "",
    since: record?.updateTimestamp ?? undefined,
    isInPlace: Object.hasOwn(jsonObjectOf(annotations[IN_PLACE_UPDATE_STATE_ANNOTATION]) ?? {}, setName),
    turnedAt: readyCondition(pod)?.lastTransitionTime ?? undefined,
  };
}

type Stands = Pick<PodStanding, "standing" | "why" | "isReady" | "isForeign" | "isHeldElsewhere">;

function standingOf(state: PodState, sidecarSet: SidecarSet): Stands {
  const isReady = state.isConsistent && state.isReady;
  const kind = classify(state, sidecarSet);
  if (kind !== "updated") return { ...OLD[kind], ...whyOld(kind, state), isReady };
  if (isReady) return { standing: "updated", why: "", isReady };
  const why = downPods(sidecarSet, [state], 1)[0]?.why ?? "";
  if (containerFailure(state.pod) === undefined)
    return { standing: "down", why, isReady, ...(isHeldElsewhere(state.pod) ? { isHeldElsewhere: true } : {}) };
  const ofOwn = containerFailure(state.pod, ownContainers(sidecarSet));
  const isForeign = ofOwn === undefined || hasOtherImage(state.pod, sidecarSet, ofOwn.container);
  return { standing: "failing", why, isReady, ...(isForeign ? { isForeign } : {}) };
}

/** A clause about an old pod, which the page shows after the pod's state. */
function whyOld(kind: PodClass, { pod, isConsistent, native, drain }: PodState): { readonly why?: string } {
  if (kind === "notUpgradable") return native?.hindrance === undefined ? {} : { why: native.hindrance };
  const failure = containerFailure(pod);
  if (kind === "waiting" && drain) return { why: `drained since ${drain.since}` };
  if (kind === "waiting" && failure) return { why: failureText(failure) };
  // The last change of such a pod never completes.
  const unreadable = kind === "inFlight" && !isConsistent ? unreadableState(pod) : undefined;
  return unreadable === undefined ? {} : { why: unreadable };
}

const OLD: Readonly<Record<Exclude<PodClass, "updated">, Pick<PodStanding, "standing" | "why">>> = {
  inFlight: { standing: "changing", why: "its last change is under way" },
  notSelected: { standing: "notSelected", why: "updateStrategy.selector leaves it out" },
  notUpgradable: { standing: "notUpgradable", why: "more than images changed: only a new pod gets it" },
  waiting: { standing: "waiting", why: "" },
};

function without(pod: Pod, sidecarSet: SidecarSet, isMissed: boolean): Stands | undefined {
  const why = isMissed ? "created after the SidecarSet, and not injected" : whyWithout(pod, sidecarSet);
  return why === undefined ? undefined : { standing: "without", why, isReady: false };
}

export const CREATED_BEFORE = "created before the SidecarSet";

function whyWithout(pod: Pod, sidecarSet: SidecarSet): string | undefined {
  const { metadata } = sidecarSet;
  if (isInjected(pod, metadata?.name ?? "") && !hasAllSidecars(pod, sidecarSet))
    return "lacks a container of the SidecarSet";
  if (declinesSidecars(pod) || pod.metadata?.annotations?.[IGNORE_MISSED_ANNOTATION] === "true") return undefined;
  const age = secondsBetween(metadata?.creationTimestamp ?? "", pod.metadata?.creationTimestamp ?? "");
  return age !== undefined && age < 0 ? CREATED_BEFORE : undefined;
}

// Counts of a SidecarSet's pods by node and by workload.

/** The number of pods by standing; an absent one is 0. */
export type StandingCounts = Readonly<Partial<Record<Standing, number>>>;

export interface PodGroup {
  /** name of the node or workload; "" for pods without a node */
  readonly name: string;
  readonly total: number;
  readonly counts: StandingCounts;
  /** sorted by namespace and name */
  readonly pods: readonly PodStanding[];
}

/** The groups, sorted by name. */
export function groupPods(pods: readonly PodStanding[], by: "node" | "workload"): readonly PodGroup[] {
  return [...Map.groupBy(pods, (pod) => pod[by])]
    .sort(([a], [b]) => compareUtf8(a, b))
    .map(([name, group]) => ({
      name,
      total: group.length,
      counts: countStandings(group),
      pods: group.toSorted((a, b) => compareUtf8(a.namespace, b.namespace) || compareUtf8(a.name, b.name)),
    }));
}

/** Sorts groups by the number of pods that need a person, most first. */
export function byNeed(groups: readonly PodGroup[]): readonly PodGroup[] {
  const need = ({ counts: { failing = 0, down = 0, without = 0, notUpgradable = 0 } }: PodGroup) =>
    failing + down + without + notUpgradable;
  return groups.toSorted((a, b) => need(b) - need(a));
}

export function countStandings(pods: readonly PodStanding[]): StandingCounts {
  const counts: Partial<Record<Standing, number>> = {};
  for (const { standing } of pods) counts[standing] = (counts[standing] ?? 0) + 1;
  return counts;
}
