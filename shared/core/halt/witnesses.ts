/** Decides which failing pods have a say about a rollout: those that it took down, by containers of the SidecarSet itself. */
import type { Pod } from "../../api/kubernetes.ts";
import { HASH_ANNOTATION, IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { parseUpgradeRecords } from "../hash/pod-records.ts";
import { isJsonObject, jsonObjectOf } from "../lib/json-object.ts";
import { secondsBetween } from "../lib/seconds-between.ts";
import { each, type Sequence } from "../lib/sequence.ts";
import { failureOf } from "../pod/failing-pods.ts";
import { readyCondition } from "../pod/is-ready.ts";
import { nativeSidecars } from "../pod/native-sidecars.ts";
import type { PodState } from "../pod/pod-state.ts";
import { sidecarContainerNames } from "../pod/sidecar-containers.ts";

export interface Witness {
  readonly namespace: string;
  /** RFC3339: when it was given the latest sidecars */
  readonly updatedAt: string;
}

export interface Testimony {
  readonly witnesses: readonly Witness[];
  /** how many pods the rollout has updated; those that were made with the latest sidecars are none of them */
  readonly upgraded: number;
  /** how many namespaces the matched pods are in */
  readonly namespaces: number;
}

/** Clocks of nodes and of passes may differ by so much. */
const SKEW_SECONDS = 60;

export function testimonyOf(sidecarSet: SidecarSet, states: Sequence<PodState>): Testimony {
  const names = new Set([...sidecarContainerNames(sidecarSet), ...nativeSidecars(sidecarSet).map(({ name }) => name)]);
  const namespaces = new Set<string>();
  const witnesses: Witness[] = [];
  let upgraded = 0;
  each(states, (state) => {
    const { namespace = "" } = state.pod.metadata ?? {};
    namespaces.add(namespace);
    const updatedAt = state.isUpdated ? upgradeOf(state.pod, sidecarSet) : undefined;
    if (updatedAt === undefined) return;
    upgraded++;
    if (isTakenDown(state, updatedAt, names)) witnesses.push({ namespace, updatedAt });
  });
  return { witnesses, upgraded, namespaces: namespaces.size };
}

function isTakenDown({ pod, isReady, isConsistent }: PodState, updatedAt: string, names: ReadonlySet<string>): boolean {
  if (isReady && isConsistent) return false;
  return wasReady(pod, updatedAt) && failureOf(pod, names) !== undefined;
}

/** Whether it may fail yet, as one that the rollout took down: it was ready when it was given the release, or is still. */
export function mayTestify({ pod }: PodState, sidecarSet: SidecarSet): boolean {
  const updatedAt = upgradeOf(pod, sidecarSet);
  if (updatedAt === undefined) return false;
  return readyCondition(pod)?.status === "True" || wasReady(pod, updatedAt);
}

/** When it was; undefined: a pass never updated it. */
function upgradeOf({ metadata }: Pod, { metadata: set }: SidecarSet): string | undefined {
  const name = set?.name ?? "";
  const states = jsonObjectOf(metadata?.annotations?.[IN_PLACE_UPDATE_STATE_ANNOTATION]) ?? {};
  if (!(Object.hasOwn(states, name) && isJsonObject(states[name]))) return undefined;
  return parseUpgradeRecords(metadata?.annotations?.[HASH_ANNOTATION]).records[name]?.updateTimestamp ?? undefined;
}

/** It was ready until then: it is not any more since it was updated. */
function wasReady(pod: Pod, updatedAt: string): boolean {
  const since = readyCondition(pod)?.lastTransitionTime;
  const later = since ? secondsBetween(updatedAt, since) : undefined;
  return later !== undefined && later >= -SKEW_SECONDS;
}
