/** Decides what the page says about one pod: where it stands, since when, and what it waits for. */
import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION, IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { parseUpgradeRecords } from "../hash/pod-records.ts";
import { jsonObjectOf } from "../lib/json-object.ts";
import { secondsBetween } from "../lib/seconds-between.ts";
import { hasAllSidecars, isActive, isInjected, isMatched } from "../pod/is-matched.ts";
import { podStateOf } from "../pod/pod-state.ts";
import { classify, type PodClass } from "../upgrade/classify.ts";
import { downPods } from "../upgrade/down-pods.ts";

/** Each pod is in exactly one. */
export type Standing =
  /** runs the current version, ready */
  | "updated"
  /** has the current version, and is not ready with it (yet) */
  | "down"
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
}

/** Undefined for a pod that is finished or on its way out, which nothing is said about. */
export function podStanding(pod: Pod, sidecarSet: SidecarSet): PodStanding | undefined {
  if (!isActive(pod)) return undefined;
  return { ...factsOf(pod, sidecarSet.metadata?.name ?? ""), ...standingOf(pod, sidecarSet) };
}

function factsOf({ metadata = {}, spec }: Pod, setName: string) {
  const { namespace = "", name = "", annotations = {} } = metadata;
  const record = parseUpgradeRecords(annotations[HASH_ANNOTATION]).records[setName];
  return {
    namespace,
    name,
    node: spec.nodeName ?? "",
    hash: record?.hash ?? "",
    since: record?.updateTimestamp ?? undefined,
    isInPlace: Object.hasOwn(jsonObjectOf(annotations[IN_PLACE_UPDATE_STATE_ANNOTATION]) ?? {}, setName),
  };
}

function standingOf(pod: Pod, sidecarSet: SidecarSet): Pick<PodStanding, "standing" | "why" | "isReady"> {
  if (!isMatched(pod, sidecarSet)) return { standing: "without", why: whyWithout(pod, sidecarSet), isReady: false };
  const state = podStateOf(pod, sidecarSet);
  const isReady = state.isConsistent && state.isReady;
  const kind = classify(state, sidecarSet);
  if (kind !== "updated") return { standing: OLD[kind].standing, why: OLD[kind].why, isReady };
  if (isReady) return { standing: "updated", why: "", isReady };
  return { standing: "down", why: downPods(sidecarSet, [state], 1)[0]?.why ?? "", isReady };
}

const OLD: Readonly<Record<Exclude<PodClass, "updated">, Pick<PodStanding, "standing" | "why">>> = {
  inFlight: { standing: "changing", why: "its last change is under way" },
  notSelected: { standing: "notSelected", why: "updateStrategy.selector leaves it out" },
  notUpgradable: { standing: "notUpgradable", why: "more than images changed: only a new pod gets it" },
  waiting: { standing: "waiting", why: "" },
};

function whyWithout(pod: Pod, sidecarSet: SidecarSet): string {
  const name = sidecarSet.metadata?.name ?? "";
  if (isInjected(pod, name) && !hasAllSidecars(pod, sidecarSet)) return "lacks a container of the SidecarSet";
  const age = secondsBetween(sidecarSet.metadata?.creationTimestamp ?? "", pod.metadata?.creationTimestamp ?? "");
  if (age !== undefined && age < 0) return "created before the SidecarSet";
  return sidecarSet.spec.injectionStrategy?.paused
    ? "injection is paused"
    : "created after the SidecarSet, and not injected";
}
