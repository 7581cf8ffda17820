/** Decides what a pod that is not created yet would become: the webhook's own decision, on objects at hand. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { ControllerRevision, Namespace, Pod } from "../../api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION, NAMESPACE_NAME_LABEL } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { Admission } from "../admission/admission.ts";
import { admitPod, type PodAdmissionContext } from "./admit-pod.ts";
import { asCreated } from "./as-created.ts";
import { indexSidecarSets } from "./match/sidecarset-index.ts";

export interface PreviewSubject {
  /** as the API server would hand it to the webhook; see pod-templates.ts for workloads */
  readonly pod: Pod;
  /** where it is to be created; the pod's own namespace goes before it */
  readonly namespace: string;
  /** absent: one with nothing but its name label */
  readonly namespaceObject?: Namespace | undefined;
  /** with defaults and hashes, as they are stored */
  readonly sidecarSets: readonly SidecarSet[];
  /** those that pin an older revision need it here */
  readonly revisions: readonly ControllerRevision[];
}

export interface Preview {
  /** what the API server would ask … */
  readonly request: AdmissionRequest;
  /** … and what the webhook decides */
  readonly admission: Admission;
  /** as it would be stored; undefined: it is refused */
  readonly pod: Pod | undefined;
  /** names of the SidecarSets that this adds to the pod */
  readonly injected: readonly string[];
}

/** Pure. The pod afterwards, byte for byte what the webhook would make of the same object. */
export function previewPod(subject: PreviewSubject, context: PodAdmissionContext): Preview {
  const { pod, sidecarSets, revisions } = subject;
  const name = pod.metadata?.namespace || subject.namespace;
  const namespace = subject.namespaceObject ?? { metadata: { name, labels: { [NAMESPACE_NAME_LABEL]: name } } };
  const request: AdmissionRequest = {
    uid: "preview",
    kind: { group: "", version: "v1", kind: "Pod" },
    resource: { group: "", version: "v1", resource: "pods" },
    ...(pod.metadata?.name ? { name: pod.metadata.name } : {}),
    namespace: name,
    operation: "CREATE",
    object: pod,
  };
  const view = { index: indexSidecarSets(sidecarSets), namespace, revisions };
  const created = asCreated(request);
  const admission = created.admissionOf(admitPod(created.request, view, context));
  if (admission.kind === "denied") return { request, admission, pod: undefined, injected: [] };
  const after = (admission.object ?? pod) as Pod;
  const before = listOf(pod);
  return { request, admission, pod: after, injected: [...listOf(after)].filter((one) => !before.has(one)) };
}

function listOf({ metadata }: Pod): ReadonlySet<string> {
  return new Set((metadata?.annotations?.[INJECTED_LIST_ANNOTATION] ?? "").split(",").filter(Boolean));
}
