/** Decides which failing pods have a say about a rollout: those that it took down, by containers of the SidecarSet itself. */
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import { failureOf } from "../../pod/container-failure.ts";
import { readyCondition } from "../../pod/is-ready.ts";
import { nativeSidecars } from "../../pod/native-sidecars.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { sidecarContainerNames } from "../../pod/sidecar-containers.ts";
import { updateTimeOf, wasReadyAt } from "../../pod/was-ready.ts";

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

export function testimonyOf(sidecarSet: SidecarSet, states: Sequence<PodState>): Testimony {
  const names = new Set([...sidecarContainerNames(sidecarSet), ...nativeSidecars(sidecarSet).map(({ name }) => name)]);
  const namespaces = new Set<string>();
  const witnesses: Witness[] = [];
  let upgraded = 0;
  each(states, (state) => {
    const { namespace = "" } = state.pod.metadata ?? {};
    namespaces.add(namespace);
    const updatedAt = state.isUpdated ? updateTimeOf(state.pod, sidecarSet) : undefined;
    if (updatedAt === undefined) return;
    upgraded++;
    if (isTakenDown(state, updatedAt, names)) witnesses.push({ namespace, updatedAt });
  });
  return { witnesses, upgraded, namespaces: namespaces.size };
}

function isTakenDown({ pod, isReady, isConsistent }: PodState, updatedAt: string, names: ReadonlySet<string>): boolean {
  if (isReady && isConsistent) return false;
  return wasReadyAt(pod, updatedAt) && failureOf(pod, names) !== undefined;
}

/** Whether it may fail yet, as one that the rollout took down: it was ready when it was given the release, or is still. */
export function mayTestify({ pod }: PodState, sidecarSet: SidecarSet): boolean {
  const updatedAt = updateTimeOf(pod, sidecarSet);
  if (updatedAt === undefined) return false;
  return readyCondition(pod)?.status === "True" || wasReadyAt(pod, updatedAt);
}
