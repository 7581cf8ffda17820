/** Decides which pods of a set a rolling update is for, and in which order it takes them. */
import type { Pod } from "../../api/kubernetes.ts";
import type { RollingUpdateStatefulSet } from "../../api/stateful-set.ts";
import { prioritize } from "../rollout/select/prioritize.ts";
import { isTakenAsUpdated, isTerminating } from "./pods/pod-phase.ts";

export interface UpdateTarget {
  readonly strategy: RollingUpdateStatefulSet | undefined;
  /** name of the revision to get to */
  readonly revision: string;
  readonly replicas: number;
  /** gate PreparingUpdateAsUpdate */
  readonly isPreparingUpdated?: boolean;
}

/** `slots` by rising ordinal, undefined where one is reserved. From the top down, or as unorderedUpdate says. */
export function updateOrder(slots: readonly (Pod | undefined)[], target: UpdateTarget): readonly Pod[] {
  const { strategy, revision, replicas, isPreparingUpdated = false } = target;
  const partition = strategy?.partition ?? 0;
  if (partition >= replicas) return [];
  const unordered = strategy?.unorderedUpdate;
  // Compat: partition is an index of slots, reserved ones included (statefulset.md, section 4).
  const candidates = (unordered ? slots : slots.slice(partition)).filter((pod) => pod !== undefined).toReversed();
  if (!unordered) return candidates.slice(0, replicas - partition);
  // Compat: pods that are updated already are counted as updated by this rollout (vector update-order).
  const isDone = (pod: Pod) => isTerminating(pod) || isTakenAsUpdated(pod, revision, isPreparingUpdated);
  const waiting = candidates.filter((pod) => !isDone(pod));
  const ordered = [...candidates.filter(isDone), ...prioritize(waiting, unordered.priorityStrategy)];
  return ordered.slice(0, replicas - partition);
}
