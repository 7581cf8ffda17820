/** Finds the lowest number of ready pods in a namespace at any time. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { PodHistory } from "./pod-history.ts";
import { isReady } from "./scene.ts";

/** Counts from the moment when all pods were ready. */
export async function fewestReady(history: PodHistory, all: number): Promise<number> {
  const ready = new Set<string>();
  let fewest: number | undefined;
  for (const { object, isRemoved } of await history.versions()) {
    const pod = object as unknown as Pod;
    const name = pod.metadata?.name ?? "";
    if (!isRemoved && isReady(pod) && pod.metadata?.deletionTimestamp === undefined) ready.add(name);
    else ready.delete(name);
    if (fewest !== undefined || ready.size === all) fewest = Math.min(fewest ?? all, ready.size);
  }
  if (fewest === undefined) throw new Error(`${all} pods were never ready`);
  return fewest;
}
