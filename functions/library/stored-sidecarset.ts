/** A SidecarSet out of a manifest, as the webhook would have it stored: v1beta1, with defaults and hashes. */
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { SIDECARSET_KIND, SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { convertSidecarSet } from "../../shared/core/sidecarset/convert.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";

/** @throws TypeError that says in one sentence what is wrong */
export function storedSidecarSet(object: KubernetesObject): SidecarSet {
  if (object.kind !== SIDECARSET_KIND)
    throw new TypeError(`a ${object.kind ?? "thing without a kind"} is no SidecarSet`);
  const hub = convertSidecarSet(object, SIDECARSET_V1BETA1);
  if (hub.kind === "DecodeError") throw new TypeError(hub.message);
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const request: AdmissionRequest = { uid: "library", resource, operation: "CREATE", object: hub.value };
  const admission = mutateSidecarSet(request);
  if (admission.kind === "denied") throw new TypeError(admission.message);
  // A copy: what is kept for a SidecarSet must not outlive the call, since whoever called may change his own.
  return { ...((admission.object ?? hub.value) as SidecarSet) };
}
