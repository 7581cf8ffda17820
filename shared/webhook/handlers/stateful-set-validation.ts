/** The validating webhook for Advanced StatefulSets: reads StorageClasses where claims may grow, and else nothing. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { StatefulSet, StorageClass } from "../../api/stateful-set.ts";
import type { Admission } from "../../core/admission/admission.ts";
import { whyLeftAlone } from "../../core/statefulset/pods/ordinals.ts";
import { validateStatefulSet } from "../../core/statefulset/validate.ts";
import { type Cluster, STORAGE_CLASSES } from "../../kube/port.ts";
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
