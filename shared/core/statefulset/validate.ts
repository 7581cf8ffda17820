/** Decides whether an Advanced StatefulSet that someone creates, changes or deletes may be. */
import type { AdmissionRequest } from "../../api/admission.ts";
import { DELETE_PROTECTION_LABEL } from "../../api/names.ts";
import type { StatefulSet, StorageClass } from "../../api/stateful-set.ts";
import { type FieldError, printFieldErrors } from "../../go/field-error.ts";
import { type Admission, badRequest } from "../admission/admission.ts";
import { setErrors } from "./admission/validate-set.ts";
import { claimTemplatesProblem, inPlaceOnlyProblem, setUpdateErrors } from "./admission/validate-set-update.ts";
import { readSet } from "./mutate.ts";
import type { StatefulSetFeatureGates } from "./step.ts";

export interface StatefulSetView {
  readonly gates: StatefulSetFeatureGates & { readonly ResourcesDeletionProtection: boolean };
  /** looked at only when claims are to grow as pods are updated */
  readonly storageClasses: readonly StorageClass[];
}

/**
 * Allowed, or denied: 400 for what cannot be decoded, 422 for what may not be stored, 403 for a protected set. Never
 * throws. Source: OpenKruise StatefulSetCreateUpdateHandler.
 */
export function validateStatefulSet(request: AdmissionRequest, { gates, storageClasses }: StatefulSetView): Admission {
  const { operation, object, oldObject } = request;
  if (operation === "DELETE") return gates.ResourcesDeletionProtection ? protect(request) : { kind: "allowed" };
  const given = readSet(object);
  if (given.kind === "DecodeError") return badRequest(given.message);
  const before = operation === "UPDATE" ? readSet(oldObject) : undefined;
  if (before?.kind === "DecodeError") return badRequest(before.message);
  const errors = [...setErrors(given.value), ...(before ? setUpdateErrors(before.value, given.value) : [])];
  if (errors.length > 0) return refuse(printFieldErrors(errors), errors);
  const problem = before && updateProblem(before.value, given.value, { gates, storageClasses });
  return problem === undefined ? { kind: "allowed" } : refuse(problem);
}

function refuse(message: string, errors?: readonly FieldError[]): Admission {
  return { kind: "denied", code: 422, reason: "Invalid", message, ...(errors ? { errors } : {}) };
}

function updateProblem(
  before: StatefulSet,
  after: StatefulSet,
  { gates, storageClasses }: Pick<StatefulSetView, "storageClasses"> & { readonly gates: StatefulSetFeatureGates },
): string | undefined {
  const problem = gates.StatefulSetAutoResizePVCGate
    ? claimTemplatesProblem(before.spec, after.spec, storageClasses)
    : undefined;
  return problem ?? inPlaceOnlyProblem(before.spec, after.spec);
}

/** One that is on its way out is asked for a last time when its finalizers are removed. */
function protect({ oldObject }: AdmissionRequest): Admission {
  if (!oldObject) return { kind: "allowed" };
  const set = readSet(oldObject);
  if (set.kind === "DecodeError") return badRequest(set.message);
  const protection = set.value.metadata?.labels?.[DELETE_PROTECTION_LABEL];
  const { replicas = 0 } = set.value.spec;
  if (set.value.metadata?.deletionTimestamp) return { kind: "allowed" };
  const isProtected = protection === "Always" || (protection === "Cascading" && replicas > 0);
  if (!isProtected) return { kind: "allowed" };
  const why = protection === "Cascading" ? ` and replicas ${replicas}>0` : "";
  const message = `forbidden by ResourcesProtectionDeletion for ${DELETE_PROTECTION_LABEL}=${protection}${why}`;
  return { kind: "denied", code: 403, reason: "Forbidden", message };
}
