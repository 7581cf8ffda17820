/** Resets the fields of a new pod that API servers reset, because they decide whether the pod gets sidecars. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { Pod } from "../../api/kubernetes.ts";
import type { Admission } from "../admission/admission.ts";
import { withReset, withSent } from "./reset-fields.ts";

const FINAL_PHASES: ReadonlySet<unknown> = new Set(["Succeeded", "Failed"]);

export interface CreatedPod {
  /** the request to decide on */
  readonly request: AdmissionRequest;
  /** The admission of the pod that was sent, from that of the pod that was decided on. */
  readonly admissionOf: (admission: Admission) => Admission;
}

/**
 * An API server resets `status` and `metadata.deletionTimestamp` of a new pod, but only after it has asked webhooks. A
 * pod that claims to have ended is therefore decided on as the pending pod that it becomes.
 */
export function asCreated(request: AdmissionRequest): CreatedPod {
  const { resource, subResource, operation, object } = request;
  const isNew = resource.resource === "pods" && !subResource && operation === "CREATE";
  const { metadata, status } = (object ?? {}) as Partial<Pod>;
  const isFinal = FINAL_PHASES.has(status?.phase);
  const isDeleted = typeof metadata?.deletionTimestamp === "string";
  if (!isNew || !(isFinal || isDeleted)) return { request, admissionOf: (admission) => admission };
  return { request: withReset(request, isFinal), admissionOf: (admission) => withSent(admission, request) };
}
