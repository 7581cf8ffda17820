/** Decides which pods are ready only once OpenKruise says so. */
import type { Pod } from "../../api/kubernetes.ts";
import { POD_READY_CONDITION, SIDECARSET_GROUP } from "../../api/names.ts";

interface Gated {
  readonly readinessGates?: readonly { readonly conditionType: string }[];
}

function isOwnedByKruise({ metadata }: Pod): boolean {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  // What an API server sends always has one; what others send may not.
  return owner?.apiVersion?.startsWith?.(`${SIDECARSET_GROUP}/`) ?? false;
}

/** The pod with the gate of workloads that OpenKruise updates in place; `isForAll` is gate KruisePodReadinessGate. */
export function addReadinessGate(pod: Pod, isForAll: boolean): Pod {
  if (!isForAll && !isOwnedByKruise(pod)) return pod;
  const readinessGates = (pod.spec as Gated | undefined)?.readinessGates ?? [];
  if (readinessGates.some(({ conditionType }) => conditionType === POD_READY_CONDITION)) return pod;
  const gates = [...readinessGates, { conditionType: POD_READY_CONDITION }];
  return { ...pod, spec: { ...pod.spec, readinessGates: gates } as Pod["spec"] };
}
