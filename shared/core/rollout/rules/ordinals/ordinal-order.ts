/** The order of waiting pods of StatefulSets when a SidecarSet follows ordinals: set by set, highest first. */
import type { Pod } from "../../../../api/kubernetes.ts";
import { STATEFUL_SET_KIND } from "../../../../api/names.ts";
import type { UpdateStrategy } from "../../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../../go/json/go-json.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import { ownerKey } from "../../../pod/replaced.ts";
import { parsePodName } from "../../../pod/workload.ts";
import { prioritize } from "../../select/prioritize.ts";

/** A pod's place in a StatefulSet. */
export interface Place {
  /** namespace and uid of the StatefulSet */
  readonly setKey: string;
  /** NAMESPACE/NAME of the StatefulSet */
  readonly set: string;
  readonly ordinal: number;
}

/** The pod's place in a StatefulSet of Kubernetes or OpenKruise; undefined: none, or its name has no ordinal. */
export function placeOf({ metadata }: Pod): Place | undefined {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (owner?.kind !== STATEFUL_SET_KIND || !/^apps(\.kruise\.io)?\//.test(owner.apiVersion ?? "")) return undefined;
  const { parent, ordinal } = parsePodName(metadata?.name ?? "");
  if (parent !== owner.name || ordinal < 0) return undefined;
  return {
    setKey: ownerKey(metadata?.namespace, owner.uid ?? ""),
    set: `${metadata?.namespace}/${owner.name}`,
    ordinal,
  };
}

/** The pod that other pods of sets wait for. */
export interface Holder {
  readonly pod: Pod;
  /** NAMESPACE/NAME of its StatefulSet */
  readonly set: string;
  /**
   * next: next in line; moving: being upgraded; late: upgraded, but not ready; down: not ready, and not to be upgraded
   * now; drained: another SidecarSet drains it; gone: evicted without a successor
   */
  readonly standing: "next" | "moving" | "late" | "down" | "drained" | "gone";
}

/** The pod that blocks each StatefulSet, by the set's key. */
export type DownPods = ReadonlyMap<string, Holder>;

export interface Member {
  readonly state: PodState;
  readonly place: Place;
}

/** The pods that belong to a set, in the same order. */
export function setMembers(states: readonly PodState[]): readonly Member[] {
  return states.flatMap((state) => {
    const place = placeOf(state.pod);
    return place ? [{ state, place }] : [];
  });
}

/** keys of sets with at least one updated pod. `all`: all matched pods. */
export function begunSets(all: readonly PodState[]): ReadonlySet<string> {
  return new Set(setMembers(all.filter(({ isUpdated }) => isUpdated)).map(({ place }) => place.setKey));
}

/**
 * The new order. `waiting`: pods in the order of priorities and scattering. Pods of no set keep their places; pods of
 * sets share theirs. Sets that have begun come first, then sets by their pod of highest priority, then by name. Within
 * a set unready pods come first, because their update takes nothing away; then the highest ordinal. `all`: all matched
 * pods.
 */
export function orderByOrdinals(
  waiting: readonly PodState[],
  all: readonly PodState[],
  strategy: UpdateStrategy | undefined,
): readonly PodState[] {
  const members = setMembers(waiting);
  const ranks = rankSets(setMembers(all), strategy);
  const begun = begunSets(all);
  const rankOf = ({ place: { setKey } }: Member) => ranks.get(setKey) ?? 0;
  const ordered = members.toSorted(
    (a, b) =>
      Number(begun.has(b.place.setKey)) - Number(begun.has(a.place.setKey)) ||
      rankOf(a) - rankOf(b) ||
      Number(a.state.isReady) - Number(b.state.isReady) ||
      b.place.ordinal - a.place.ordinal,
  );
  const next = ordered.values();
  const isMember = new Set(members.map(({ state }) => state));
  return waiting.map((state) => (isMember.has(state) ? (next.next().value?.state ?? state) : state));
}

/** Ranks sets by labels and names alone, so that the order stays the same while pods come and go. */
function rankSets(members: readonly Member[], strategy: UpdateStrategy | undefined): ReadonlyMap<string, number> {
  const named = members.toSorted(
    (a, b) =>
      compareUtf8(a.place.set, b.place.set) ||
      compareUtf8(a.place.setKey, b.place.setKey) ||
      b.place.ordinal - a.place.ordinal,
  );
  const keys = new Map(named.map(({ state: { pod }, place }) => [pod, place.setKey]));
  const prioritized = prioritize([...keys.keys()], strategy?.priorityStrategy);
  return new Map([...new Set(prioritized.map((pod) => keys.get(pod) ?? ""))].map((key, rank) => [key, rank]));
}
