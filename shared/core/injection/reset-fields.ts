/** The fields that API servers reset of a new pod, for the few pods that are created with them. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { Pod } from "../../api/kubernetes.ts";
import type { Admission } from "../admission/admission.ts";

/** The request with the pod as it will be stored. `isFinal`: the pod claims to have ended. */
export function withReset(request: AdmissionRequest, isFinal: boolean): AdmissionRequest {
  const { metadata, status } = (request.object ?? {}) as Partial<Pod>;
  const { deletionTimestamp, ...kept } = metadata ?? {};
  const object = {
    ...request.object,
    ...(metadata ? { metadata: kept } : {}),
    ...(isFinal ? { status: { ...status, phase: "Pending" } } : {}),
  };
  return { ...request, object };
}

/** The admission with the fields as they were sent: the patch is the difference to that pod, and touches none of them. */
export function withSent(admission: Admission, { object }: AdmissionRequest): Admission {
  if (admission.kind === "denied" || admission.object === undefined) return admission;
  const { status, metadata } = (object ?? {}) as Pod;
  const { deletionTimestamp } = metadata ?? {};
  const own = deletionTimestamp === undefined ? {} : { deletionTimestamp };
  return {
    ...admission,
    object: {
      ...admission.object,
      metadata: { ...admission.object.metadata, ...own },
      ...(status === undefined ? {} : { status }),
    },
  };
}
