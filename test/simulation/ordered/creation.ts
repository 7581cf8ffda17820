/** Judges whether a pass may create a pod, from the objects that the pass had read. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { conditionIn, desiredOrdinals, isOrdered, ordinalOf, scaleBudgetOf } from "./objects.ts";

/** The objects that a pass got when it last looked. */
export interface Sight {
  set?: StatefulSet;
  /** time when the pass got it */
  setAtMs?: number;
  pods: readonly Pod[];
}

/** Milliseconds: the greatest age of the read set when its pod is created. */
const MOST_MS = 1_000;

/** Judges the age of the read set when the create is sent. */
export function staleness({ setAtMs = Number.NEGATIVE_INFINITY }: Sight, nowMs: number): string | undefined {
  return nowMs - setAtMs > MOST_MS ? `makes a pod for a set that it was told of ${nowMs - setAtMs} ms ago` : undefined;
}

/**
 * One sentence for each fault. An ordered set creates a pod only after all below are ready, and another within the
 * scale budget.
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
