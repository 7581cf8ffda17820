/** Decides which failing pods have a say about a rollout: those that it took down, by containers of the SidecarSet itself. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { each, type Sequence } from "../../../go/sequence.ts";
import { failureOf } from "../../pod/container-failure.ts";
import { readyCondition } from "../../pod/is-ready.ts";
import { nativeSidecars } from "../../pod/native-sidecars.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { replacesNotUpgradable } from "../../pod/replaced.ts";
import { sidecarContainerNames } from "../../pod/sidecar-containers.ts";
import { updateTimeOf, wasReadyAt } from "../../pod/was-ready.ts";
import { lastSpecWrite } from "../missed/selection.ts";

export interface Witness {
  readonly namespace: string;
  /** RFC3339: when it was given the latest sidecars */
  readonly updatedAt: string;
}

export interface Testimony {
  readonly witnesses: readonly Witness[];
  /** how many pods the rollout has updated; pods created with the latest sidecars count only where pods are replaced */
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
    const given = state.isUpdated ? givenTo(state.pod, sidecarSet) : undefined;
    if (given === undefined) return;
    upgraded++;
    if (given.wasReady && fails(state, names)) witnesses.push({ namespace, updatedAt: given.at });
  });
  return { witnesses, upgraded, namespaces: namespaces.size };
}

function fails({ pod, isReady, isConsistent }: PodState, names: ReadonlySet<string>): boolean {
  return !(isReady && isConsistent) && failureOf(pod, names) !== undefined;
}

/** When it was given the latest sidecars, by a pass or in the place of one that was evicted, and whether it was ready then. */
function givenTo(pod: Pod, sidecarSet: SidecarSet): { readonly at: string; readonly wasReady: boolean } | undefined {
  const updatedAt = updateTimeOf(pod, sidecarSet);
  if (updatedAt !== undefined) return { at: updatedAt, wasReady: wasReadyAt(pod, updatedAt) };
  const createdAt = creationTimeOf(pod, sidecarSet);
  return createdAt === undefined ? undefined : { at: createdAt, wasReady: true };
}

/** Where pods are replaced, a pod created since the change stands for one that was evicted. */
function creationTimeOf({ metadata }: Pod, sidecarSet: SidecarSet): string | undefined {
  if (!replacesNotUpgradable(sidecarSet)) return undefined;
  const created = metadata?.creationTimestamp ?? "";
  return created > (lastSpecWrite(sidecarSet.metadata) ?? "~") ? created : undefined;
}

/** Whether it may fail yet, as one that the rollout took down: it was ready when it was given the release, or is still. */
export function mayTestify({ pod }: PodState, sidecarSet: SidecarSet): boolean {
  const updatedAt = updateTimeOf(pod, sidecarSet);
  if (updatedAt === undefined) return creationTimeOf(pod, sidecarSet) !== undefined;
  return readyCondition(pod)?.status === "True" || wasReadyAt(pod, updatedAt);
}
