/** Admits a generated pod. */
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { Admission } from "../../shared/core/admission/admission.ts";
import { admitPod } from "../../shared/core/injection/admit-pod.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { KRUISE_NAMESPACE, NAMESPACE, type Scene } from "./arbitraries.ts";

interface Circumstances {
  /** the result of every random draw */
  readonly draw?: number;
  readonly sortByName?: boolean;
  /** time of the admission, RFC 3339 */
  readonly now?: string;
}

export function podRequest(object: Pod): AdmissionRequest {
  const resource = { group: "", version: "v1", resource: "pods" };
  return { uid: "u", resource, namespace: "shop", operation: "CREATE", object };
}

export function admission({ pod, sidecarSets, revisions }: Scene, circumstances: Circumstances = {}): Admission {
  const { draw = 0.3, sortByName = false, now = "2026-01-02T03:04:05Z" } = circumstances;
  return admitPod(
    podRequest(pod),
    { index: indexSidecarSets(sidecarSets), namespace: NAMESPACE, revisions },
    {
      now,
      random: () => draw,
      kruiseNamespace: KRUISE_NAMESPACE,
      gates: { EnableSortSidecarContainerByName: sortByName },
    },
  );
}

/** Returns the pod after admission; undefined: it is refused. */
export function admitted(scene: Scene, circumstances: Circumstances = {}): Pod | undefined {
  const result = admission(scene, circumstances);
  return result.kind === "denied" ? undefined : ((result.object ?? scene.pod) as Pod);
}
