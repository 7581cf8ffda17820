/** Decides what the page says about one pod: where it stands, since when, and what it waits for. */
import type { Pod } from "../../../api/kubernetes.ts";
import { HASH_ANNOTATION, IGNORE_MISSED_ANNOTATION, IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { jsonObjectOf } from "../../../go/json/json-object.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { failureOf, failureText } from "../../pod/container-failure.ts";
import { hasOtherImage, ownContainers } from "../../pod/failing-pods.ts";
import { declinesSidecars, hasAllSidecars, isActive, isInjected, isMatched } from "../../pod/is-matched.ts";
import { readyCondition } from "../../pod/is-ready.ts";
import { parseUpgradeRecords } from "../../pod/pod-records.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { unreadableState } from "../../pod/update-state.ts";
import { workloadOf } from "../../pod/workload.ts";
import { classify, type PodClass } from "../../rollout/select/classify.ts";
import { downPods } from "../../rollout/select/down-pods.ts";

export const NO_WORKLOAD = "pods without a workload";

/** Each pod is in exactly one. */
export type Standing =
  /** runs the current version, ready */
  | "updated"
  /** has the current version, and is not ready with it yet */
  | "down"
  /** has the current version, and a container of it cannot run */
  | "failing"
  /** between two versions */
  | "changing"
  /** old, gets its turn */
  | "waiting"
  /** old, the update strategy's selector leaves it out */
  | "notSelected"
  /** old, and only a new pod gets the current version */
  | "notUpgradable"
  /** selected, and without the sidecars */
  | "without";

export interface PodStanding {
  readonly namespace: string;
  readonly name: string;
  /** "" while no node was found */
  readonly node: string;
  /** with its namespace, such as `shop/deployment/web` */
  readonly workload: string;
  readonly standing: Standing;
  /** one clause; "" when there is nothing to say */
  readonly why: string;
  /** of what the pod got last, "" where nothing is recorded */
  readonly hash: string;
  /** RFC3339; when the pod got that, by creation or in place */
  readonly since: string | undefined;
  /** was changed in place at least once */
  readonly isInPlace: boolean;
  readonly isReady: boolean;
  /** the container that fails, or its image, is not of the SidecarSet; absent: it is, or none fails */
  readonly isForeign?: true;
  /** RFC3339: when it became ready, or not ready, last */
  readonly turnedAt: string | undefined;
}

/**
 * Undefined for a pod that nothing is said about: it is finished or on its way out, or is to have no sidecars.
 * `isMissed`: it should have been given them when it was made, and was not.
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

type Stands = Pick<PodStanding, "standing" | "why" | "isReady" | "isForeign">;

function standingOf(state: PodState, sidecarSet: SidecarSet): Stands {
  const isReady = state.isConsistent && state.isReady;
  const kind = classify(state, sidecarSet);
  if (kind !== "updated") return { ...OLD[kind], ...whyOld(kind, state), isReady };
  if (isReady) return { standing: "updated", why: "", isReady };
  const why = downPods(sidecarSet, [state], 1)[0]?.why ?? "";
  if (failureOf(state.pod) === undefined) return { standing: "down", why, isReady };
  const ofOwn = failureOf(state.pod, ownContainers(sidecarSet));
  const isForeign = ofOwn === undefined || hasOtherImage(state.pod, sidecarSet, ofOwn.container);
  return { standing: "failing", why, isReady, ...(isForeign ? { isForeign } : {}) };
}

/** What to say of an old pod beside its class. */
function whyOld(kind: PodClass, { pod, isConsistent, native, drain }: PodState): { readonly why?: string } {
  if (kind === "notUpgradable") return native?.hindrance === undefined ? {} : { why: native.hindrance };
  const failure = failureOf(pod);
  if (kind === "waiting" && drain) return { why: `drained since ${drain.since}` };
  if (kind === "waiting" && failure) return { why: failureText(failure) };
  // Its last change never comes to its end.
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
