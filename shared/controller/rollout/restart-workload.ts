/** One restart of a workload, on condition that it is still what it was: what `kubectl rollout restart` writes, and for whom. */
import { RESTARTED_AT_ANNOTATION, RESTARTED_FOR_ANNOTATION } from "../../api/names.ts";
import type { PodState } from "../../core/ledger.ts";
import type { RestartWorkload } from "../../core/rollout/replace/restarts.ts";
import {
  BUILT_IN_STATEFUL_SETS,
  type Cluster,
  DAEMON_SETS,
  DEPLOYMENTS,
  type PartialObject,
  PODS,
} from "../../kube/port.ts";

const RESOURCES = { Deployment: DEPLOYMENTS, StatefulSet: BUILT_IN_STATEFUL_SETS, DaemonSet: DAEMON_SETS } as const;

/** Of what is reserved. */
export function resourceOf({ workload }: Pick<PodState, "workload">) {
  return workload === undefined ? PODS : RESOURCES[workload];
}

export async function restartWorkload(
  cluster: Cluster,
  { workload, at, restartedFor }: RestartWorkload,
): Promise<PartialObject> {
  const { uid, resourceVersion } = workload;
  const body = {
    metadata: { uid, resourceVersion, annotations: { [RESTARTED_FOR_ANNOTATION]: restartedFor } },
    spec: { template: { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: at } } } },
  };
  return await cluster.patch<PartialObject>(
    resourceOf(workload),
    workload,
    { type: "merge", body },
    { answer: "metadata" },
  );
}
