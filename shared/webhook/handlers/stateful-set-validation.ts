/** The validating webhook for Advanced StatefulSets: reads StorageClasses where claims may grow, and else nothing. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { StorageClass } from "../../api/stateful-set.ts";
import { validateStatefulSet } from "../../core/statefulset/validate.ts";
import { type Cluster, STORAGE_CLASSES } from "../../kube/port.ts";
import type { FeatureGates } from "../../settings/feature-gates.ts";
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
    return validateStatefulSet(request, { gates, storageClasses });
  };
}

function isUpdate({ operation }: AdmissionRequest): boolean {
  return operation === "UPDATE";
}
