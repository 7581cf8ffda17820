/** Judges whether a pass may create a pod, from the objects that the pass had read. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { conditionIn, desiredOrdinals, isOrdered, ordinalOf, scaleBudgetOf } from "./objects.ts";

/** The objects in a pass' last answers. */
export interface Sight {
  set?: StatefulSet;
  /** the time when the pass read the set */
  setAtMs?: number;
  pods: readonly Pod[];
}

/** The greatest age of the read set when its pod is created, in milliseconds. */
const MOST_MS = 1_000;

/** Judges the age of the read set when the pass sends the new pod. */
export function staleness({ setAtMs = Number.NEGATIVE_INFINITY }: Sight, nowMs: number): string | undefined {
  return nowMs - setAtMs > MOST_MS ? `makes a pod for a set that it was told of ${nowMs - setAtMs} ms ago` : undefined;
}

/**
 * Returns one sentence for each fault. An ordered set creates a pod only after all lower pods are ready. Other sets
 * create pods within the scale budget.
 */
export function creationProblems(ordinal: number, { set, pods }: Sight, nowMs: number): readonly string[] {
  if (!set) return ["is made by a pass that read no set"];
  const lower = desiredOrdinals(set.spec).filter((one) => one < ordinal);
  const waiting = lower.filter((one) => !isAvailable(set, find(pods, one), nowMs));
  if (isOrdered(set)) return waiting.map((one) => `comes before ordinal ${one} was ready`);
  const budget = scaleBudgetOf(set.spec);
  return waiting.length >= budget ? [`comes while ${waiting.length} below are not ready, ${budget} allowed`] : [];
}

function find(pods: readonly Pod[], ordinal: number): Pod | undefined {
  return pods.find((pod) => ordinalOf(pod) === ordinal);
}

function isAvailable({ spec }: StatefulSet, pod: Pod | undefined, nowMs: number): boolean {
  const ready = pod && conditionIn(pod, "Ready");
  if (pod?.status?.phase !== "Running" || ready?.status !== "True" || pod.metadata?.deletionTimestamp) return false;
  const seconds = spec.updateStrategy?.rollingUpdate?.minReadySeconds ?? 0;
  // Times are stored in whole seconds.
  return seconds === 0 || nowMs - Date.parse(ready.lastTransitionTime ?? "") >= 1000 * (seconds - 1);
}
