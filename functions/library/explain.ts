/** The library: the reasons why a pod has or lacks its sidecars, and why it waits. Objects in, values out, no I/O. */
import type { ControllerRevision, KubernetesObject, Namespace, Pod } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { explainPod, explainSidecarSet } from "../../shared/core/inspect/explain/explain.ts";
import type { PodRegistration } from "../../shared/core/inspect/explain/registration.ts";
import type { Step } from "../../shared/core/inspect/explain/step.ts";
import {
  NAMESPACE_OBJECT,
  NOW,
  OBJECT,
  OBJECTS,
  optionally,
  PASS,
  POD,
  PODS,
  REGISTRATIONS,
  REVISIONS,
  readArguments,
  within,
} from "./arguments.ts";
import { assumed, type PassInput, settingsOf, storedSidecarSet } from "./pass-input.ts";

export interface ExplainInput extends PassInput {
  /** the SidecarSet with its status */
  readonly sidecarSet: KubernetesObject;
  /** the pod to explain; absent: the whole rollout is explained */
  readonly pod?: Pod;
  /** the pods that the SidecarSet selects, with their status; absent: only `pod` */
  readonly pods?: readonly Pod[];
  /** the pod's namespace, with its labels */
  readonly namespaceObject?: Namespace;
  /** all SidecarSets of the cluster, for conflicts and canaries; absent: only this one */
  readonly sidecarSets?: readonly KubernetesObject[];
  /** the SidecarSet's revisions */
  readonly revisions?: readonly ControllerRevision[];
  /** webhooks that inject sidecars; absent: they are unknown */
  readonly registrations?: readonly PodRegistration[];
  /** time of the last pass, RFC 3339; absent: it is unknown */
  readonly lastPass?: string;
  /** the present time, RFC 3339, whole seconds, UTC */
  readonly now: string;
}

const ARGUMENTS = {
  ...PASS,
  sidecarSet: OBJECT,
  now: NOW,
  pod: optionally(POD),
  pods: optionally(PODS),
  namespaceObject: NAMESPACE_OBJECT,
  sidecarSets: optionally(OBJECTS),
  revisions: REVISIONS,
  registrations: REGISTRATIONS,
  lastPass: optionally(NOW),
};

/**
 * Every rule in the order of its evaluation, with its result.
 * @throws TypeError that says in one sentence which argument is wrong
 */
export function explain(given: ExplainInput): readonly Step[] {
  const input = readArguments("explain", given, ARGUMENTS);
  const { pod, revisions = [], registrations, lastPass, now } = input;
  const sidecarSet = within("explain", "sidecarSet", () => asStored(input.sidecarSet));
  const sidecarSets = (input.sidecarSets ?? [input.sidecarSet]).map((one, index) =>
    within("explain", `sidecarSets[${index}]`, () => asStored(one)),
  );
  const pods = input.pods ?? (pod === undefined ? [] : [pod]);
  const context = { now, settings: settingsOf(input), kruiseNamespace: KRUISE_NAMESPACE };
  const facts = { pods, revisions, ...assumed(input), ...context, lastPass, sidecarSets };
  if (pod === undefined) return explainSidecarSet(sidecarSet, facts);
  return explainPod(pod, sidecarSet, { ...facts, namespace: input.namespaceObject, registrations });
}

/** The stored SidecarSet with its status. The status counts here, and a manifest has none. */
function asStored(object: KubernetesObject): SidecarSet {
  const { status } = object as SidecarSet;
  return { ...storedSidecarSet(object), ...(status ? { status } : {}) };
}
