/** The webhook of ContainerRecreateRequests: reads the pod that a new one names, and that pod's node, as they are now. */
import type { KubernetesObject, Pod } from "../../api/kubernetes.ts";
import { admitContainerRecreateRequest, podWanted } from "../../core/container-recreate/admit.ts";
import { ifThere } from "../../kube/error.ts";
import { type Cluster, NODES, PODS } from "../../kube/port.ts";
import type { FeatureGates } from "../../settings/feature-gates.ts";
import type { Admit } from "../review/app.ts";

export interface RecreateAdmissionOptions {
  readonly connect: () => Promise<Cluster>;
  readonly featureGates: FeatureGates;
}

/** Rejects with KubeError when the cluster cannot be read. */
export function containerRecreateAdmission({ connect, featureGates: gates }: RecreateAdmissionOptions): Admit {
  return async (request) => {
    const wanted = gates.KruiseDaemon ? podWanted(request) : undefined;
    if (!wanted) return admitContainerRecreateRequest(request, { gates });
    const cluster = await connect();
    const pod = await ifThere(cluster.get<Pod>(PODS, wanted));
    const name = pod?.spec.nodeName;
    const node = name ? await ifThere(cluster.get<KubernetesObject>(NODES, { name })) : undefined;
    return admitContainerRecreateRequest(request, { pod, node, gates });
  };
}
