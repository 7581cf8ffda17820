/** The validating webhook for Advanced StatefulSets: reads StorageClasses where claims may grow, and else nothing. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { KubernetesObject, Pod } from "../../api/kubernetes.ts";
import type { StatefulSet, StorageClass } from "../../api/stateful-set.ts";
import type { Admission } from "../../core/admission/admission.ts";
import { admitContainerRecreateRequest, podWanted } from "../../core/container-recreate/admit.ts";
import { whyLeftAlone } from "../../core/statefulset/pods/ordinals.ts";
import { validateStatefulSet } from "../../core/statefulset/validate.ts";
import { ifThere } from "../../kube/error.ts";
import { type Cluster, NODES, PODS, STORAGE_CLASSES } from "../../kube/port.ts";
import type { FeatureGates } from "../../settings/feature-gates.ts";
import { withWarnings } from "../review/admission-warnings.ts";
import type { Admit } from "../review/app.ts";

export interface StatefulSetValidationOptions {
  readonly connect: () => Promise<Cluster>;
  readonly featureGates: FeatureGates;
}

/** Rejects with KubeError when StorageClasses are needed and cannot be read. */
export function statefulSetValidation({ connect, featureGates: gates }: StatefulSetValidationOptions): Admit {
  return async (request) => {
    const isNeeded = gates.StatefulSetAutoResizePVCGate && isUpdate(request);
    const storageClasses = isNeeded ? (await (await connect()).list<StorageClass>(STORAGE_CLASSES)).items : [];
    return warnOfTooLarge(request, validateStatefulSet(request, { gates, storageClasses }), gates);
  };
}

function warnOfTooLarge({ object }: AdmissionRequest, admission: Admission, gates: FeatureGates): Admission {
  if (admission.kind === "denied" || !object) return admission;
  // An allowed set could be decoded.
  const problem = whyLeftAlone((object as StatefulSet).spec, gates.StatefulSetStartOrdinal);
  return withWarnings(admission, problem === undefined ? [] : [problem]);
}

function isUpdate({ operation }: AdmissionRequest): boolean {
  return operation === "UPDATE";
}

// The webhook of ContainerRecreateRequests: reads the pod that a new one names, and that pod's node, as they are now.

interface RecreateAdmissionOptions {
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
