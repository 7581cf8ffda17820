/** The library: a pod as it would be stored, with its sidecars. Objects in, values out, no I/O. */
import type { ControllerRevision, KubernetesObject, Namespace, Pod } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../shared/api/names.ts";
import type { InjectionGates } from "../../shared/core/injection/admit-pod.ts";
import { podsOf, previewPod } from "../../shared/core/injection/preview.ts";
import { admissionResponse } from "../../shared/webhook/review/response.ts";
import {
  FUNCTION,
  gates,
  NAMESPACE_OBJECT,
  NOW,
  OBJECT,
  OBJECTS,
  REVISIONS,
  readArguments,
  TEXT,
  within,
} from "./arguments.ts";
import { kindText, storedSidecarSet } from "./pass-input.ts";

export interface PreviewInput {
  /** a Pod, or an object with pod templates; only the first template is used */
  readonly object: KubernetesObject;
  /** SidecarSets from manifests, or from the API server */
  readonly sidecarSets: readonly KubernetesObject[];
  /** namespace for a pod without one; absent: default */
  readonly namespace?: string;
  /** the namespace with its labels; absent: a namespace that has only the label of its name */
  readonly namespaceObject?: Namespace;
  /** the revisions that injectionStrategy.revision may name */
  readonly revisions?: readonly ControllerRevision[];
  /** time for the pod's annotations, RFC 3339 */
  readonly now: string;
  /** a random number in [0, 1), for injectionStrategy.revision with the policy Partial; absent: 0 */
  readonly random?: () => number;
  /** FEATURE_GATES of the webhooks; an absent gate is off */
  readonly featureGates?: InjectionGates;
}

export type PreviewResult =
  /** `patch`: a JSON patch as text, as the webhook sends it; "[]" if nothing changes */
  | {
      readonly kind: "admitted";
      readonly pod: Pod;
      readonly patch: string;
      /** names of the injected SidecarSets */
      readonly injected: readonly string[];
    }
  | { readonly kind: "refused"; readonly message: string };

const ARGUMENTS = {
  object: OBJECT,
  sidecarSets: OBJECTS,
  now: NOW,
  namespace: TEXT,
  namespaceObject: NAMESPACE_OBJECT,
  revisions: REVISIONS,
  random: FUNCTION,
  featureGates: gates("EnableSortSidecarContainerByName"),
};

/** The pod after injection. @throws TypeError that says in one sentence which argument is wrong */
export function preview(given: PreviewInput): PreviewResult {
  const input = readArguments("preview", given, ARGUMENTS);
  const {
    object,
    namespace = "default",
    namespaceObject,
    revisions = [],
    now,
    random = () => 0,
    featureGates = {},
  } = input;
  const [pod] = podsOf(object);
  if (pod === undefined) throw new TypeError(`preview: object: a ${kindText(object)} has no pod template`);
  const sidecarSets = input.sidecarSets.map((one, index) =>
    within("preview", `sidecarSets[${index}]`, () => storedSidecarSet(one)),
  );
  const context = { now, random, kruiseNamespace: KRUISE_NAMESPACE, gates: featureGates };
  const result = previewPod({ pod, namespace, namespaceObject, sidecarSets, revisions }, context);
  if (result.admission.kind === "denied") return { kind: "refused", message: result.admission.message };
  const { patch } = admissionResponse(result.request, result.admission);
  const text = patch === undefined ? "[]" : Buffer.from(patch, "base64").toString();
  return { kind: "admitted", pod: result.pod ?? pod, patch: text, injected: result.injected };
}
