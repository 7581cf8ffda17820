/** Decides in which order pods of StatefulSets wait where a SidecarSet follows ordinals: set after set, from the top down. */
import type { Pod } from "../../../../api/kubernetes.ts";
import { STATEFUL_SET_KIND } from "../../../../api/names.ts";
import type { UpdateStrategy } from "../../../../api/sidecarset.ts";
import { compareUtf8 } from "../../../../go/json/go-json.ts";
import { parsePodName } from "../../../pod/pod-name.ts";
import type { PodState } from "../../../pod/pod-state.ts";
import { prioritize } from "../../select/prioritize.ts";

/** Where a pod has its place in a StatefulSet. */
export interface Place {
  readonly setUid: string;
  /** NAMESPACE/NAME of the StatefulSet */
  readonly set: string;
  readonly ordinal: number;
}

/** Of Kubernetes' StatefulSets and OpenKruise's alike. undefined: the pod is of none, or its name has no ordinal. */
export function placeOf({ metadata }: Pod): Place | undefined {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (owner?.kind !== STATEFUL_SET_KIND || !/^apps(\.kruise\.io)?\//.test(owner.apiVersion ?? "")) return undefined;
  const { parent, ordinal } = parsePodName(metadata?.name ?? "");
  if (parent !== owner.name || ordinal < 0) return undefined;
  return { setUid: owner.uid ?? "", set: `${metadata?.namespace}/${owner.name}`, ordinal };
}

/** What the pods of sets wait for. */
export interface Holder {
  readonly pod: Pod;
  /** NAMESPACE/NAME of its StatefulSet */
  readonly set: string;
  /** next: it is its turn; moving: it is being upgraded, or not ready again; down: it is not ready, and not to be upgraded now; drained: another SidecarSet drains it; gone: it was evicted, and has no successor */
  readonly standing: "next" | "moving" | "down" | "drained" | "gone";
}

/** uid of a StatefulSet → a pod of it that keeps it from going on */
export type DownPods = ReadonlyMap<string, Holder>;

export interface Member {
  readonly state: PodState;
  readonly place: Place;
}

/** Those that are of a set, in the same order. */
export function membersOf(states: readonly PodState[]): readonly Member[] {
  return states.flatMap((state) => {
    const place = placeOf(state.pod);
    return place ? [{ state, place }] : [];
  });
}

/** uids of sets of which a pod is updated already. `all` are the matched pods. */
export function begunSets(all: readonly PodState[]): ReadonlySet<string> {
  return new Set(membersOf(all.filter(({ isUpdated }) => isUpdated)).map(({ place }) => place.setUid));
}

/**
 * `waiting` as priorities and scattering left it: pods of no set keep their places, those of sets share theirs. Sets that
 * have begun come first; then those with the pod of highest priority; then by name. Within a set pods that are down come
 * first, since nothing is taken away by their update; then the highest ordinal. `all` are the matched pods.
 */
export function orderByOrdinals(
  waiting: readonly PodState[],
  all: readonly PodState[],
  strategy: UpdateStrategy | undefined,
): readonly PodState[] {
  const members = membersOf(waiting);
  const ranks = rankSets(membersOf(all), strategy);
  const begun = begunSets(all);
  const rankOf = ({ place: { setUid } }: Member) => ranks.get(setUid) ?? 0;
  const ordered = members.toSorted(
    (a, b) =>
      Number(begun.has(b.place.setUid)) - Number(begun.has(a.place.setUid)) ||
      rankOf(a) - rankOf(b) ||
      Number(a.state.isReady) - Number(b.state.isReady) ||
      b.place.ordinal - a.place.ordinal,
  );
  const next = ordered.values();
  const isMember = new Set(members.map(({ state }) => state));
  return waiting.map((state) => (isMember.has(state) ? (next.next().value?.state ?? state) : state));
}

/** By labels and names alone, so that the order stays the same while pods come and go. */
function rankSets(members: readonly Member[], strategy: UpdateStrategy | undefined): ReadonlyMap<string, number> {
  const named = members.toSorted(
    (a, b) =>
      compareUtf8(a.place.set, b.place.set) ||
      compareUtf8(a.place.setUid, b.place.setUid) ||
      b.place.ordinal - a.place.ordinal,
  );
  const uids = new Map(named.map(({ state: { pod }, place }) => [pod, place.setUid]));
  const prioritized = prioritize([...uids.keys()], strategy?.priorityStrategy);
  return new Map([...new Set(prioritized.map((pod) => uids.get(pod) ?? ""))].map((uid, rank) => [uid, rank]));
}
